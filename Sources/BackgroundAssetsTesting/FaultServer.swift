// The real server whose answers go wrong as told, for tests that need a network beside those that simulate one.
package import DevelopmentServer

/// The server of `backgroundassets serve`: a folder over http or https on this machine, with the faults of the catalogue.
///
///     let server = try await FaultServer.start(
///         folder: folder, faults: FaultPlan(parsing: ["*.pack:close@1MiBx2"])) { record in ... }
package typealias FaultServer = StaticServer
