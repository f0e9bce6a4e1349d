// A compiled call filter, as far as it is changed after its compilation.

/// Instructions of classic BPF: 2 bytes operation, 1 and 1 bytes to jump, 4 bytes operand, in the machine's order.
package enum FilterProgram {
    private static let instructionSize = 8
    /// Jumps where the loaded word equals the operand.
    private static let jumpIfEqual: UInt16 = 0x15

    /// The program with one number in the place of another, wherever it compares with that.
    package static func replacing(_ old: UInt32, with new: UInt32, in program: [UInt8]) -> [UInt8] {
        var result = program
        for start in stride(from: 0, to: program.count - instructionSize + 1, by: instructionSize) {
            let operand = start + 4
            guard word(program, start, 2) == UInt32(jumpIfEqual), word(program, operand, 4) == old else { continue }
            for place in 0..<4 {
                let shift = UInt32(8 * (isBigEndian ? 3 - place : place))
                result[operand + place] = UInt8(truncatingIfNeeded: new >> shift)
            }
        }
        return result
    }

    private static let isBigEndian = UInt16(1).bigEndian == 1

    private static func word(_ bytes: [UInt8], _ start: Int, _ count: Int) -> UInt32 {
        let places = isBigEndian ? Array(start..<start + count) : (start..<start + count).reversed()
        return places.reduce(0) { $0 << 8 | UInt32(bytes[$1]) }
    }
}
