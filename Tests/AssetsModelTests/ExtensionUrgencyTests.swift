// How urgent an extension's work is.
import AssetsModel
import Testing

@Suite struct ExtensionUrgencyTests {
    @Test("Urgent work has the priority of everybody, other work less; only the first can do the other's")
    func priorities() {
        #expect(ExtensionUrgency.foreground.nice == 0 && ExtensionUrgency.foreground.diskLevel == nil)
        #expect(ExtensionUrgency.background.nice == 5 && ExtensionUrgency.background.diskLevel == 7)
        #expect(ExtensionUrgency.foreground.serves(.foreground) && ExtensionUrgency.foreground.serves(.background))
        #expect(ExtensionUrgency.background.serves(.background) && !ExtensionUrgency.background.serves(.foreground))
    }
}
