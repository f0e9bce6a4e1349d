// What stands beside the bytes of a partial file.
import AssetsModel
import Testing

@Suite("Notes beside partial files")
struct PartialNoteTests {
    private static let points: [ResumePoint] = [
        note(), note(etag: nil, lastModified: lastModified, total: 0),
        note(etag: "\"a b \u{e4} =\"", lastModified: lastModified, total: .max, epoch: "3f-9:17", digest: 7),
        note(etag: "", total: 0, epoch: ""), note(etag: nil, digest: 1),
    ]

    @Test("A note is read as it was written", arguments: points, [Int64(0), 40])
    func same(point: ResumePoint, stale: Int64) {
        let written = PartialNote(point, staleOffset: stale)
        #expect(written.text.flatMap { PartialNote($0) } == written)
        var again = point
        again.isSecondTry = true
        let second = PartialNote(again, staleOffset: stale)
        #expect(second.text.flatMap { PartialNote($0) } == second && second != written)
    }

    @Test("What was synced is not told: only the row knows")
    func synced() {
        #expect(PartialNote(note(synced: 40)) == PartialNote(note(synced: 0)))
    }

    @Test("A tag cannot write fields of its own")
    func lines() {
        #expect(PartialNote(note(etag: "\"v1\"\nepoch \(here)")).text == nil)
        #expect(PartialNote(note(etag: nil, lastModified: "x\n")).text == nil)
    }

    @Test("A row of as many bytes, or fewer, may be older than bytes that have started over")
    func stale() {
        #expect(!PartialNote(note()).isNewer(than: note(synced: 1)))
        #expect(PartialNote(note(), staleOffset: 40).isNewer(than: note(synced: 40)))
        #expect(!PartialNote(note(), staleOffset: 40).isNewer(than: note(synced: 41)))
    }

    @Test(
        "Anything else is nothing",
        arguments: [
            "", "\n", "\"v1\"", "total 5", "epoch e", "total -1\nepoch e", "total 5x\nepoch e",
            "total 99999999999999999999\nepoch e",
            "total 5\ntotal 5\nepoch e", "total 5\nepoch e\n", "total 5\nepoch e\nsize 3", "total 5\nepoch",
            "total 5\nepoch e\nstale -1", "total 5\nepoch e\ndigest md5=00", "total 5\nepoch e\ndigest sha-256=00",
        ])
    func refused(text: String) {
        #expect(PartialNote(text) == nil)
    }
}
