// The call filter of an extension, changed so that its refusals are told from the kernel's.
import Glibc

enum EscapeFilter {
    /// Instructions of classic BPF: 2 bytes operation, 1 and 1 bytes to jump, 4 bytes operand.
    private static let instructionSize = 8
    /// Ends the program with the operand.
    private static let end: UInt16 = 0x06
    private static let answerError: UInt32 = 0x5_0000

    /// The program with another error number wherever it answers EPERM.
    static func refusing(by number: Int32, _ program: [UInt8]) -> [UInt8] {
        var result = program
        result.withUnsafeMutableBytes { bytes in
            for start in stride(from: 0, to: bytes.count - instructionSize + 1, by: instructionSize) {
                let operand = start + 4
                guard bytes.loadUnaligned(fromByteOffset: start, as: UInt16.self) == end,
                    bytes.loadUnaligned(fromByteOffset: operand, as: UInt32.self) == answerError | UInt32(EPERM)
                else { continue }
                bytes.storeBytes(of: answerError | UInt32(number), toByteOffset: operand, as: UInt32.self)
            }
        }
        return result
    }
}
