// The C side, with the lock of four bytes, comes with the module, as on Apple's systems.

@_exported public import os
