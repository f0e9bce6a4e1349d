// org.varlink.service: what every varlink service answers about itself, and the errors of the protocol.

/// `org.varlink.service`.
package enum VarlinkService {
    package static let interface = "org.varlink.service"

    /// Who made the service, and its interfaces.
    package enum GetInfo: WireMethod {
        package static let name = "org.varlink.service.GetInfo"
        package typealias Parameters = Nothing
        package struct Reply: Codable, Hashable, Sendable {
            package var vendor: String
            package var product: String
            package var version: String
            package var url: String
            package var interfaces: [String]

            package init(vendor: String, product: String, version: String, url: String, interfaces: [String]) {
                self.vendor = vendor
                self.product = product
                self.version = version
                self.url = url
                self.interfaces = interfaces
            }
        }
    }

    /// The text of an interface.
    package enum GetInterfaceDescription: WireMethod {
        package static let name = "org.varlink.service.GetInterfaceDescription"
        package struct Parameters: Codable, Hashable, Sendable {
            package var interface: String
            package init(interface: String) { self.interface = interface }
        }
        package struct Reply: Codable, Hashable, Sendable {
            package var description: String
            package init(description: String) { self.description = description }
        }
    }

    /// An error of the protocol itself.
    package enum Problem: Error, Hashable, Sendable {
        case interfaceNotFound(String)
        case methodNotFound(String)
        case methodNotImplemented(String)
        case invalidParameter(String)
        /// The method is a stream and was called without `more`.
        case expectedMore

        package var name: String {
            switch self {
            case .interfaceNotFound: "org.varlink.service.InterfaceNotFound"
            case .methodNotFound: "org.varlink.service.MethodNotFound"
            case .methodNotImplemented: "org.varlink.service.MethodNotImplemented"
            case .invalidParameter: "org.varlink.service.InvalidParameter"
            case .expectedMore: "org.varlink.service.ExpectedMore"
            }
        }

        /// The error with that name and these parameters; nil for the error of another interface.
        package init?(name: String, frame: UnsafeRawBufferPointer) {
            let parameters = (try? WireCodec.decodeParameters(as: Parameters.self, frame)) ?? Parameters()
            switch name {
            case "org.varlink.service.InterfaceNotFound": self = .interfaceNotFound(parameters.interface ?? "")
            case "org.varlink.service.MethodNotFound": self = .methodNotFound(parameters.method ?? "")
            case "org.varlink.service.MethodNotImplemented": self = .methodNotImplemented(parameters.method ?? "")
            case "org.varlink.service.InvalidParameter": self = .invalidParameter(parameters.parameter ?? "")
            case "org.varlink.service.ExpectedMore": self = .expectedMore
            default: return nil
            }
        }

        fileprivate struct Parameters: Codable {
            var interface: String?
            var method: String?
            var parameter: String?
        }

        fileprivate var parameters: Parameters {
            switch self {
            case .interfaceNotFound(let name): Parameters(interface: name)
            case .methodNotFound(let name), .methodNotImplemented(let name): Parameters(method: name)
            case .invalidParameter(let name): Parameters(parameter: name)
            case .expectedMore: Parameters()
            }
        }
    }
}

extension WireCodec {
    /// An error of the protocol.
    package static func error(_ problem: VarlinkService.Problem) -> [UInt8] {
        // Fails only for a name that fills a message; its caller then learns the kind of the error alone.
        (try? error(problem.name, problem.parameters)) ?? Array("{\"error\":\"\(problem.name)\"}".utf8)
    }

    /// The error `Refused` of the interface that `method` belongs to.
    package static func refusal(of method: String, _ refusal: Refusal) -> [UInt8] {
        let name = CallHeader(method: method).interface + ".Refused"
        // Fails only for texts that fill a message; the code is what callers act on.
        return (try? error(name, refusal))
            ?? Array(
                "{\"error\":\"\(name)\",\"parameters\":{\"code\":\(refusal.code),\"reason\":\"\",\"remedy\":\"\"}}".utf8
            )
    }
}
