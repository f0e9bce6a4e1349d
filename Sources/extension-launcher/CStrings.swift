// Arguments and environment as execve takes them.
import Glibc

/// A list of C strings that ends with NULL. Never freed: the process becomes another program.
struct CStrings {
    let pointers: [UnsafeMutablePointer<CChar>?]

    init(_ strings: [String]) { pointers = strings.map { strdup($0) } + [nil] }
}
