// What is forbidden on each version of Landlock: everything that it knows.
import AssetsSandbox
import Testing

@Suite struct LandlockTests {
    /// Version, rights to files, rights to TCP, scopes, as the kernel's documentation has them.
    private static let table: [(Int32, UInt64, UInt64, UInt64)] = [
        (0, 0, 0, 0), (1, 0x1FFF, 0, 0), (2, 0x3FFF, 0, 0), (3, 0x7FFF, 0, 0), (4, 0x7FFF, 3, 0), (5, 0xFFFF, 3, 0),
        (6, 0xFFFF, 3, 3), (7, 0xFFFF, 3, 3), (8, 0xFFFF, 3, 3), (9, 0x1FFFF, 3, 3), (10, 0x1FFFF, 3, 3),
        (.max, 0x1FFFF, 3, 3),
    ]

    @Test("Every right and scope of a kernel's Landlock is handled", arguments: table)
    func abilities(version: Int32, files: UInt64, network: UInt64, scopes: UInt64) {
        let abilities = LandlockAbilities(version: version)
        #expect(abilities.files.rawValue == files)
        #expect(abilities.network == network)
        #expect(abilities.scopes == scopes)
    }

    @Test("A newer kernel forbids no less, and has no more weaknesses")
    func grows() {
        for version in 0...LandlockAbilities.latestKnown {
            let (older, newer) = (LandlockAbilities(version: version), LandlockAbilities(version: version + 1))
            #expect(newer.files.isSuperset(of: older.files))
            #expect(newer.network & older.network == older.network)
            #expect(newer.scopes & older.scopes == older.scopes)
        }
        #expect(LandlockAbilities(version: 0).weaknesses.count == 1)
        #expect(LandlockAbilities(version: 1).weaknesses.count == 4)
        #expect(LandlockAbilities(version: 2).weaknesses.count == 3)
        #expect(LandlockAbilities(version: 6).weaknesses.isEmpty)
    }

    @Test("A grant never gives a right that its use does not need, nor one that the kernel would refuse")
    func grants() {
        for version: Int32 in 1...10 {
            let handled = LandlockAbilities(version: version).files
            for use in SandboxGrant.Use.allCases {
                for isFolder in [true, false] {
                    let grant = SandboxGrant("/x", use, isFolder: isFolder)
                    guard let rights = grant.rights(handled: handled) else {
                        #expect(use == .mount)
                        continue
                    }
                    #expect(handled.isSuperset(of: rights))
                    #expect(isFolder || LandlockFileRights.ofFiles.isSuperset(of: rights))
                    #expect(rights.contains(.execute) == (use == .run))
                    #expect(rights.contains(.makeFile) == (use == .write && isFolder))
                    #expect(rights.contains(.refer) == (use == .write && isFolder && version >= 2))
                    #expect(rights.contains(.writeFile) == (use == .write || use == .device))
                    #expect(!rights.contains(.truncate) || use == .write)
                }
            }
        }
    }
}
