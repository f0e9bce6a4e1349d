// Messages in the manner of printf.

internal import Foundation

/// A format with places for values.
struct LogFormat {
    private enum Piece {
        case text(String)
        case place(flags: String, conversion: Character, privacy: OSLogPrivacy)
    }

    /// Characters of the flags, width and precision of a place.
    private static let flagsMax = 16

    private var pieces: [Piece] = []

    init(_ format: String) {
        var rest = format[...]
        var text = ""
        while let character = rest.popFirst() {
            guard character == "%" else {
                text.append(character)
                continue
            }
            if rest.first == "%" {
                rest.removeFirst()
                text.append("%")
                continue
            }
            guard let place = Self.place(&rest) else {
                // Not a place after all.
                text.append("%")
                continue
            }
            if !text.isEmpty { pieces.append(.text(text)) }
            text = ""
            pieces.append(place)
        }
        if !text.isEmpty { pieces.append(.text(text)) }
    }

    /// Reads `{public}-08.3lld` behind the sign; leaves the rest as it was where that is no place.
    private static func place(_ rest: inout Substring) -> Piece? {
        var cursor = rest
        var privacy = OSLogPrivacy.auto
        if cursor.first == "{" {
            guard let end = cursor.firstIndex(of: "}") else { return nil }
            let words = cursor[cursor.index(after: cursor.startIndex)..<end]
                .split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
            let mask: OSLogPrivacy.Mask = words.contains("mask.hash") ? .hash : .none
            if words.contains("sensitive") {
                privacy = .sensitive(mask: mask)
            } else if words.contains("private") {
                privacy = .private(mask: mask)
            } else if words.contains("public") {
                privacy = .public
            } else {
                privacy = .auto(mask: mask)
            }
            cursor = cursor[end...].dropFirst()
        }
        let flags = cursor.prefix { "-+ #0123456789.".contains($0) }
        cursor = cursor.dropFirst(flags.count)
        cursor = cursor.drop { "hlqLztj".contains($0) }
        guard flags.count <= flagsMax, let conversion = cursor.popFirst(),
            "@sSdDiuUxXoOfFeEgGaAcCpm".contains(conversion)
        else { return nil }
        rest = cursor
        return .place(flags: String(flags), conversion: conversion, privacy: privacy)
    }

    /// The message; a place without a value is shown as such.
    func parts(_ values: [Any?]) -> [LogPart] {
        var values = values[...]
        return pieces.map { piece in
            switch piece {
            case .text(let text): return .text(text)
            case .place(_, "m", _): return .text(String(cString: strerror(errno)))
            case .place(let flags, let conversion, let privacy):
                guard let value = values.popFirst() else { return .text("<missing>") }
                let (text, isNumber) = Self.text(of: value, flags, conversion)
                return .value(text, isNumber && privacy == .auto ? .public : privacy)
            }
        }
    }

    /// The value as the place wants it; by its description where the two do not fit.
    private static func text(of value: Any?, _ flags: String, _ conversion: Character) -> (String, isNumber: Bool) {
        guard let value else { return ("(null)", false) }
        switch conversion {
        case "d", "D", "i", "u", "U", "x", "X", "o", "O", "c", "C":
            guard let number = integer(value) else { break }
            if "cC".contains(conversion) {
                return (Unicode.Scalar(UInt32(truncatingIfNeeded: number)).map { String($0) } ?? "?", true)
            }
            let letter = conversion == "D" ? "d" : conversion == "U" ? "u" : conversion == "O" ? "o" : conversion
            return (String(format: "%\(bounded(flags))ll\(letter)", number), true)
        case "f", "F", "e", "E", "g", "G", "a", "A":
            guard let number = floating(value) else { break }
            return (String(format: "%\(bounded(flags))\(conversion)", number), true)
        case "p":
            let address =
                (value as? UnsafeRawPointer).map { UInt(bitPattern: $0) }
                ?? (value as? OpaquePointer).map { UInt(bitPattern: $0) }
            if let address { return ("0x" + String(address, radix: 16), true) }
        default: break
        }
        if let text = value as? UnsafePointer<CChar> { return (String(cString: text), false) }
        return ("\(value)", false)
    }

    /// Numbers of the flags, bounded: a width asks for memory.
    private static func bounded(_ flags: String) -> String {
        flags.split(separator: ".", omittingEmptySubsequences: false).map { part in
            let signs = part.prefix { !("1"..."9").contains($0) }
            return String(signs) + String(part.dropFirst(signs.count).prefix(3))
        }.joined(separator: ".")
    }

    private static func integer(_ value: Any) -> Int64? {
        if let number = value as? any BinaryInteger { return Int64(truncatingIfNeeded: number) }
        if let number = value as? NSNumber { return number.int64Value }
        if let truth = value as? Bool { return truth ? 1 : 0 }
        return nil
    }

    private static func floating(_ value: Any) -> Double? {
        switch value {
        case let number as Double: number
        case let number as Float: Double(number)
        case let number as CGFloat: Double(number)
        case let number as NSNumber: number.doubleValue
        case let number as any BinaryInteger: Double(Int64(truncatingIfNeeded: number))
        default: nil
        }
    }
}
