import AssetsModel
import Testing

@Suite("A calendar that is set back")
struct CalendarWatchTests {
    private static let day = Duration.seconds(86_400)

    @Test("Is noticed once, by how much")
    func once() {
        var watch = CalendarWatch()
        #expect(watch.setBack(calendar: Self.day, process: .seconds(5)) == nil)
        #expect(watch.setBack(calendar: Self.day + .seconds(10), process: .seconds(15)) == nil)
        #expect(watch.setBack(calendar: Self.day - .seconds(3580), process: .seconds(25)) == .seconds(3600))
        #expect(watch.setBack(calendar: Self.day - .seconds(3570), process: .seconds(35)) == nil)
    }

    @Test("Forward it also goes while the machine sleeps")
    func forward() {
        var watch = CalendarWatch()
        _ = watch.setBack(calendar: .zero, process: .zero)
        #expect(watch.setBack(calendar: Self.day, process: .seconds(1)) == nil)
        #expect(watch.setBack(calendar: .seconds(2), process: .seconds(2)) == Self.day - .seconds(1))
    }

    @Test("Corrections are nothing, until they come to something")
    func corrections() {
        var watch = CalendarWatch()
        _ = watch.setBack(calendar: Self.day, process: .zero)
        #expect(watch.setBack(calendar: Self.day - .seconds(30), process: .zero) == nil)
        #expect(watch.setBack(calendar: Self.day - .seconds(60), process: .zero) == nil)
        #expect(watch.setBack(calendar: Self.day - .seconds(61), process: .zero) == .seconds(61))
    }

    @Test("What another process wrote down is a witness")
    func witness() {
        var watch = CalendarWatch()
        #expect(watch.setBack(calendar: Self.day, process: .seconds(7), witness: Self.day - .seconds(9)) == nil)
        var later = CalendarWatch()
        #expect(later.setBack(calendar: Self.day, process: .zero, witness: Self.day * 2) == Self.day)
        #expect(later.setBack(calendar: Self.day, process: .zero) == nil)
    }
}
