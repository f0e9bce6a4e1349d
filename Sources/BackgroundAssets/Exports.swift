// `import BackgroundAssets` alone gives URLRequest, URLSession and their kin, as on Apple's systems.

@_exported public import ExtensionFoundation
@_exported public import Foundation
@_exported public import FoundationNetworking
