// `import OSLog` gives what `import os` gives, and Foundation, as on Apple's systems.

@_exported public import Foundation
@_exported public import os
