// The preferences of an app group, without the repair library in between.
import Foundation
import Glibc
import Testing

@testable import BackgroundAssets

@Suite struct GroupDefaultsTests {
    private let folder: TemporaryFolder
    private var file: String { folder.url.path + "/Library/Preferences/group.a.plist" }

    init() throws { folder = try TemporaryFolder() }

    private func defaults() -> GroupDefaults { GroupDefaults(container: folder.url.path, group: "group.a") }

    /// Objects as Foundation hands them over.
    private func set(_ value: NSObject?, _ key: String, in defaults: GroupDefaults) {
        let key = NSString(string: key)
        withExtendedLifetime((key, value)) {
            defaults.set(
                value.map { UnsafeRawPointer(Unmanaged.passUnretained($0).toOpaque()) },
                forKey: UnsafeRawPointer(Unmanaged.passUnretained(key).toOpaque()))
        }
    }

    private func get(_ key: String, in defaults: GroupDefaults) -> NSObject? {
        let key = NSString(string: key)
        return withExtendedLifetime(key) {
            defaults.copyValue(forKey: UnsafeRawPointer(Unmanaged.passUnretained(key).toOpaque()))
                .map { Unmanaged<NSObject>.fromOpaque($0).takeRetainedValue() }
        }
    }

    private func number(_ key: String, in defaults: GroupDefaults) -> Int? {
        (get(key, in: defaults) as? NSNumber)?.intValue
    }

    @Test("What one sets the other reads at once, in both directions")
    func sharing() {
        let (first, second) = (defaults(), defaults())
        #expect(number("a", in: second) == nil)
        set(NSNumber(value: 1), "a", in: first)
        #expect(number("a", in: second) == 1)
        set(NSNumber(value: 2), "a", in: second)
        set(NSNumber(value: 3), "b", in: second)
        #expect(number("a", in: first) == 2 && number("b", in: first) == 3)
        set(nil, "a", in: first)
        #expect(number("a", in: second) == nil && number("b", in: second) == 3)
        #expect(first.synchronize())
    }

    @Test("The file is a property list that everybody can read")
    func format() throws {
        let defaults = defaults()
        set(NSString(string: "text"), "text", in: defaults)
        set(NSNumber(value: true), "truth", in: defaults)
        set(NSData(data: Data([1, 2])), "data", in: defaults)
        let data = try #require(FileManager.default.contents(atPath: file))
        let list = try PropertyListSerialization.propertyList(from: data, format: nil) as? [String: Any]
        #expect(list?["text"] as? String == "text")
        #expect(list?["truth"] as? Bool == true)
        #expect(list?["data"] as? Data == Data([1, 2]))
    }

    @Test("Writers in many threads and several objects lose nothing")
    func concurrency() {
        let many = (0..<4).map { _ in defaults() }
        DispatchQueue.concurrentPerform(iterations: 4) { index in
            for number in 0..<25 { set(NSNumber(value: number), "\(index) \(number)", in: many[index]) }
        }
        let fresh = defaults()
        for index in 0..<4 {
            for expected in 0..<25 { #expect(number("\(index) \(expected)", in: fresh) == expected) }
        }
    }

    @Test(
        "A damaged file is set aside, not deleted, and the preferences start anew",
        arguments: ["", "nonsense", "bplist00"])
    func damage(content: String) throws {
        _ = try folder.file("Library/Preferences/group.a.plist", content)
        let defaults = defaults()
        #expect(number("a", in: defaults) == nil)
        set(NSNumber(value: 1), "a", in: defaults)
        #expect(number("a", in: defaults) == 1)
        #expect(FileManager.default.contents(atPath: file + ".damaged") == Data(content.utf8))
    }

    @Test("A property list whose root is no dictionary is damaged")
    func root() throws {
        let data = try PropertyListSerialization.data(fromPropertyList: ["a"], format: .xml, options: 0)
        _ = try folder.file("Library/Preferences/group.a.plist", String(decoding: data, as: UTF8.self))
        #expect(number("a", in: defaults()) == nil)
    }

    @Test("Too much for preferences is refused, and what was there stays")
    func size() {
        let defaults = defaults()
        set(NSNumber(value: 1), "a", in: defaults)
        set(NSData(data: Data(count: GroupDefaults.sizeMax)), "large", in: defaults)
        #expect(get("large", in: defaults) == nil)
        #expect(number("a", in: defaults) == 1)
        // A value that no property list holds is refused as well.
        set(NSObject(), "object", in: defaults)
        #expect(number("a", in: defaults) == 1)
    }

    @Test("A link in the place of the lock or of the next file is not followed")
    func links() throws {
        let target = try folder.file("target", "kept")
        for name in [".group.a.lock", ".group.a.next"] {
            let link = folder.url.path + "/Library/Preferences/" + name
            try FileManager.default.createDirectory(
                atPath: folder.url.path + "/Library/Preferences", withIntermediateDirectories: true)
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target.path)
            set(NSNumber(value: 1), "a", in: defaults())
            #expect(number("a", in: defaults()) == nil)
            try FileManager.default.removeItem(atPath: link)
        }
        #expect(FileManager.default.contents(atPath: target.path) == Data("kept".utf8))
    }
}
