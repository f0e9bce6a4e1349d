#pragma once
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <openssl/pem.h>

// Macros and variadics of OpenSSL as functions.
static inline EVP_PKEY *copenssl_generate_p256(void) { return EVP_EC_gen("P-256"); }
static inline long copenssl_bio_bytes(BIO *bio, char **bytes) { return BIO_get_mem_data(bio, bytes); }
static inline int copenssl_require_tls12(SSL_CTX *context) {
    return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
}
// Writes that were cut short are repeated from a buffer that may have moved.
static inline void copenssl_allow_partial_writes(SSL_CTX *context) {
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}
static inline int copenssl_add_to_chain(SSL_CTX *context, X509 *certificate) {
    return (int)SSL_CTX_add1_chain_cert(context, certificate);
}
static inline ASN1_TIME *copenssl_time_from_now(long seconds) { return X509_gmtime_adj(NULL, seconds); }
// A server learns from a client's handshake which host it wants, and may then still choose what to show.
static inline void copenssl_set_server_name_callback(SSL_CTX *context, int (*callback)(SSL *, int *, void *)) {
    SSL_CTX_set_tlsext_servername_callback(context, callback);
}
static inline void copenssl_set_owner(SSL *ssl, void *owner) { SSL_set_app_data(ssl, owner); }
static inline void *copenssl_owner(const SSL *ssl) { return SSL_get_app_data(ssl); }
// Every handshake is a full one.
static inline void copenssl_forbid_resumption(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}
