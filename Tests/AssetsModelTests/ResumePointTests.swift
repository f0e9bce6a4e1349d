// What stands beside the bytes of a partial file.
import AssetsModel
import Testing

@Suite("Resume points as text")
struct ResumePointTests {
    private static let points: [ResumePoint] = [
        note(synced: 0),
        note(etag: nil, lastModified: lastModified, total: 0, synced: 0),
        note(etag: "\"a b \u{e4} =\"", lastModified: lastModified, total: .max, synced: 0, epoch: "3f-9:17", digest: 7),
        note(etag: "", total: 0, synced: 0, epoch: ""),
        note(etag: nil, synced: 0, digest: 1),
    ]

    @Test("A point is read as it was written", arguments: points)
    func same(point: ResumePoint) {
        #expect(point.text.flatMap { ResumePoint($0) } == point)
        var again = point
        again.isSecondTry = true
        #expect(again.text.flatMap { ResumePoint($0) } == again)
    }

    @Test("What was synced is not told: only the row knows")
    func synced() {
        #expect(note(synced: 40).text.flatMap { ResumePoint($0) } == note(synced: 0))
    }

    @Test("A tag cannot write fields of its own")
    func lines() {
        #expect(note(etag: "\"v1\"\nepoch \(here)").text == nil)
        #expect(note(etag: nil, lastModified: "x\n", synced: 0).text == nil)
    }

    @Test(
        "Anything else is nothing",
        arguments: [
            "", "\n", "\"v1\"", "total 5", "epoch e", "total -1\nepoch e", "total 5x\nepoch e",
            "total 99999999999999999999\nepoch e",
            "total 5\ntotal 5\nepoch e", "total 5\nepoch e\n", "total 5\nepoch e\nsize 3", "total 5\nepoch",
            "total 5\nepoch e\ndigest md5=00", "total 5\nepoch e\ndigest sha-256=00",
        ])
    func refused(text: String) {
        #expect(ResumePoint(text) == nil)
    }
}
