// The repair library: loaded before Foundation, it stands in the way of those of Foundation's functions that do harm on
// Linux, and lets BackgroundAssets put better ones in their place.
//
// It needs nothing but the C library, so that it can be loaded into every program. As long as nobody has put anything in
// their place, the functions do what they always did.
#ifndef FOUNDATION_REPAIR_H
#define FOUNDATION_REPAIR_H

// The functions, in the order of the table.
enum {
    foundation_repair_replace_item_at,  // FileManager.replaceItemAt(_:withItemAt:backupItemName:options:)
    foundation_repair_replace_item,     // FileManager.replaceItem(at:withItemAt:backupItemName:options:)
    foundation_repair_read_data,        // Data.init(contentsOf:options:)
    foundation_repair_copy_value,       // CFPreferencesCopyAppValue
    foundation_repair_set_value,        // CFPreferencesSetAppValue
    foundation_repair_copy_multiple,    // CFPreferencesCopyMultiple
    foundation_repair_synchronize,      // CFPreferencesAppSynchronize
    foundation_repair_count
};

// Changes whenever the table does.
#define FOUNDATION_REPAIR_VERSION 1

// What is called for each function: at first Foundation's own, or NULL where it was not found. NULL for another version.
void **foundation_repair_table(unsigned version);

#endif
