// What may stand in the parentheses of a log message.

/// Collects the pieces of a log message.
public struct OSLogInterpolation: StringInterpolationProtocol, Sendable {
    var parts: [LogPart] = []

    /// Starts a message.
    public init(literalCapacity: Int, interpolationCount: Int) {
        parts.reserveCapacity(2 * interpolationCount + 1)
    }

    /// Adds text.
    public mutating func appendLiteral(_ literal: String) {
        if !literal.isEmpty { parts.append(.text(literal)) }
    }

    private mutating func append(
        _ value: String, _ privacy: OSLogPrivacy, _ align: OSLogStringAlignment = .none, isOpen: Bool = false
    ) {
        // A number says little about a person, a text may say everything.
        let privacy = isOpen && privacy.rule == .auto ? .public : privacy
        parts.append(.value(align.applied(to: value), privacy))
    }

    /// Adds a text; private unless said otherwise.
    public mutating func appendInterpolation(
        _ argumentString: String, align: OSLogStringAlignment = .none, privacy: OSLogPrivacy = .auto
    ) {
        append(argumentString, privacy, align)
    }

    /// Adds a value by its description; private unless said otherwise.
    @_disfavoredOverload
    public mutating func appendInterpolation<Value: CustomStringConvertible>(
        _ value: Value, align: OSLogStringAlignment = .none, privacy: OSLogPrivacy = .auto
    ) {
        append(value.description, privacy, align)
    }

    /// Adds an error by its description; private unless said otherwise.
    ///
    /// - Parameter attributes: Ignored: the journal has no use for them.
    @_disfavoredOverload
    public mutating func appendInterpolation(
        _ error: any Error, privacy: OSLogPrivacy = .auto, attributes: String = ""
    ) {
        append(String(describing: error), privacy)
    }

    /// Adds the name of a type; public unless said otherwise.
    public mutating func appendInterpolation(
        _ value: any Any.Type, align: OSLogStringAlignment = .none, privacy: OSLogPrivacy = .auto
    ) {
        append(String(reflecting: value), privacy, align, isOpen: true)
    }

    /// Adds a whole number; public unless said otherwise.
    public mutating func appendInterpolation<Number: FixedWidthInteger>(
        _ number: Number, format: OSLogIntegerFormatting = .decimal, align: OSLogStringAlignment = .none,
        privacy: OSLogPrivacy = .auto
    ) {
        append(format.text(of: number), privacy, align, isOpen: true)
    }

    /// Adds a whole number that stands for something; public unless said otherwise.
    public mutating func appendInterpolation(
        _ number: Int, format: OSLogIntExtendedFormat, privacy: OSLogPrivacy = .auto
    ) {
        append(format.text(of: number), privacy, isOpen: true)
    }

    /// Adds a whole number that stands for something; public unless said otherwise.
    public mutating func appendInterpolation(
        _ number: Int32, format: OSLogInt32ExtendedFormat, privacy: OSLogPrivacy = .auto
    ) {
        append(format.text(of: number), privacy, isOpen: true)
    }

    /// Adds a number; public unless said otherwise.
    public mutating func appendInterpolation(
        _ number: Float, format: OSLogFloatFormatting = .fixed, align: OSLogStringAlignment = .none,
        privacy: OSLogPrivacy = .auto
    ) {
        append(format.text(of: Double(number)), privacy, align, isOpen: true)
    }

    /// Adds a number; public unless said otherwise.
    public mutating func appendInterpolation(
        _ number: Double, format: OSLogFloatFormatting = .fixed, align: OSLogStringAlignment = .none,
        privacy: OSLogPrivacy = .auto
    ) {
        append(format.text(of: number), privacy, align, isOpen: true)
    }

    /// Adds a truth value; public unless said otherwise.
    public mutating func appendInterpolation(
        _ boolean: Bool, format: OSLogBoolFormat = .truth, privacy: OSLogPrivacy = .auto
    ) {
        append(format.text(of: boolean), privacy, isOpen: true)
    }

    /// Adds an address; public unless said otherwise.
    public mutating func appendInterpolation(
        _ pointer: UnsafeRawPointer, align: OSLogStringAlignment = .none, privacy: OSLogPrivacy = .auto
    ) {
        append("0x" + String(UInt(bitPattern: pointer), radix: 16), privacy, align, isOpen: true)
    }
}
