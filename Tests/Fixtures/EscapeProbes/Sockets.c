// Sockets of every kind: no byte leaves the extension but through the three it inherited.
#define _GNU_SOURCE
#include "Families.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/vm_sockets.h>
#include <mqueue.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

static struct sockaddr_in loopback(long port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static struct escape_verdict connect_to(int socket_, const void *address, socklen_t length) {
    if (socket_ == -1) return escape_denied("socket");
    return escape_result(connect(socket_, address, length), "connect", "is connected");
}

static struct escape_verdict abstract(const struct escape_scene *scene, int type) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(scene->abstract_socket);
    memcpy(address.sun_path + 1, scene->abstract_socket, length);
    return connect_to(
        socket(AF_UNIX, type | SOCK_CLOEXEC, 0), &address,
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length));
}
static struct escape_verdict abstract_stream(const struct escape_scene *scene) { return abstract(scene, SOCK_STREAM); }

static struct escape_verdict abstract_name(const struct escape_scene *scene) {
    (void)scene;
    // A name that another program may wait for.
    int socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ == -1) return escape_denied("socket");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    return escape_result(bind(socket_, (struct sockaddr *)&address, sizeof address.sun_family), "bind", "has a name");
}

static struct escape_verdict pair(const struct escape_scene *scene) {
    (void)scene;
    int ends[2];
    return escape_result(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), "socketpair", "made a pair");
}

static struct escape_verdict tcp(const struct escape_scene *scene) {
    struct sockaddr_in address = loopback(scene->tcp_port);
    return connect_to(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), &address, sizeof address);
}
static struct escape_verdict tcp6(const struct escape_scene *scene) {
    // The same listener by its mapped address.
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)scene->tcp_port)};
    if (inet_pton(AF_INET6, "::ffff:127.0.0.1", &address.sin6_addr) != 1) return escape_denied("inet_pton");
    int socket_ = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ == -1 && errno == EAFNOSUPPORT) return escape_not_applicable("this kernel has no IPv6");
    return connect_to(socket_, &address, sizeof address);
}
static struct escape_verdict mptcp(const struct escape_scene *scene) {
    struct sockaddr_in address = loopback(scene->tcp_port);
    int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_MPTCP);
    if (socket_ == -1 && (errno == EPROTONOSUPPORT || errno == ENOPROTOOPT))
        return escape_not_applicable("this kernel has no MPTCP");
    return connect_to(socket_, &address, sizeof address);
}
static struct escape_verdict fast_open(const struct escape_scene *scene) {
    // Connects without connect.
    struct sockaddr_in address = loopback(scene->tcp_port);
    int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ == -1) return escape_denied("socket");
    return escape_result(
        sendto(socket_, "x", 1, MSG_FASTOPEN, (struct sockaddr *)&address, sizeof address), "sendto MSG_FASTOPEN", "sent a byte");
}
static struct escape_verdict listen_tcp(const struct escape_scene *scene) {
    (void)scene;
    struct sockaddr_in address = loopback(0);
    int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ == -1) return escape_denied("socket");
    if (bind(socket_, (struct sockaddr *)&address, sizeof address) == -1) return escape_denied("bind");
    return escape_result(listen(socket_, 1), "listen", "listens");
}
static struct escape_verdict listen_unbound(const struct escape_scene *scene) {
    (void)scene;
    // The kernel picks a port.
    int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ == -1) return escape_denied("socket");
    return escape_result(listen(socket_, 1), "listen", "listens");
}
static struct escape_verdict udp(const struct escape_scene *scene) {
    struct sockaddr_in address = loopback(scene->udp_port);
    int socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket_ == -1) return escape_denied("socket");
    return escape_result(
        sendto(socket_, "x", 1, 0, (struct sockaddr *)&address, sizeof address), "sendto", "sent a datagram");
}
static struct escape_verdict names(const struct escape_scene *scene) {
    (void)scene;
    // A name server is asked by UDP, port 53 of this machine here.
    struct sockaddr_in address = loopback(53);
    int socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket_ == -1) return escape_denied("socket");
    if (connect(socket_, (struct sockaddr *)&address, sizeof address) == -1) return escape_denied("connect");
    return escape_result(send(socket_, "x", 1, 0), "send", "sent a question");
}
static struct escape_verdict ping(const struct escape_scene *scene) {
    (void)scene;
    int socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_ICMP);
    return escape_result(socket_, "socket", "may ping");
}
static struct escape_verdict raw(const struct escape_scene *scene) {
    (void)scene;
    return escape_result(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP), "socket", "has a raw socket");
}
static struct escape_verdict packet(const struct escape_scene *scene) {
    (void)scene;
    return escape_result(socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket", "has a packet socket");
}
static struct escape_verdict alg(const struct escape_scene *scene) {
    (void)scene;
    int socket_ = socket(38, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (socket_ == -1 && errno == EAFNOSUPPORT) return escape_not_applicable("this kernel has no AF_ALG");
    return escape_result(socket_, "socket", "has a socket of the kernel's ciphers");
}
static struct escape_verdict vsock(const struct escape_scene *scene) {
    (void)scene;
    // To no machine: a name of its own would already be one too many.
    struct sockaddr_vm address = {.svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_ANY, .svm_port = VMADDR_PORT_ANY};
    int socket_ = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ == -1 && errno == EAFNOSUPPORT) return escape_not_applicable("this kernel has no AF_VSOCK");
    if (socket_ == -1) return escape_denied("socket");
    return escape_result(bind(socket_, (struct sockaddr *)&address, sizeof address), "bind", "has a port of the virtual machine");
}

// Netlink answers from the kernel.

static struct escape_verdict ask(int protocol, const void *question, size_t length, const char *what) {
    int socket_ = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    if (socket_ == -1) return escape_denied("socket");
    if (send(socket_, question, length, 0) == -1) return escape_denied("send");
    char answer[8192];
    ssize_t count = recv(socket_, answer, sizeof answer, 0);
    if (count == -1) return escape_denied("recv");
    const struct nlmsghdr *head = (const struct nlmsghdr *)answer;
    if (head->nlmsg_type == NLMSG_ERROR || head->nlmsg_type == NLMSG_DONE) return escape_held("there was nothing to be told");
    return escape_reached(what);
}
static struct escape_verdict routes(const struct escape_scene *scene) {
    (void)scene;
    struct {
        struct nlmsghdr head;
        struct rtgenmsg body;
    } question = {{sizeof question, RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 1, 0}, {AF_UNSPEC}};
    return ask(NETLINK_ROUTE, &question, sizeof question, "knows the network's links");
}
static struct escape_verdict connections(const struct escape_scene *scene) {
    (void)scene;
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 body;
    } question = {{sizeof question, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 1, 0}, {0}};
    question.body.sdiag_family = AF_INET;
    question.body.sdiag_protocol = IPPROTO_TCP;
    question.body.idiag_states = ~0U;
    return ask(NETLINK_SOCK_DIAG, &question, sizeof question, "knows the machine's connections");
}
static struct escape_verdict devices(const struct escape_scene *scene) {
    (void)scene;
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = 1};
    int socket_ = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);
    if (socket_ == -1) return escape_denied("socket");
    return escape_result(bind(socket_, (struct sockaddr *)&address, sizeof address), "bind", "hears of devices");
}
static struct escape_verdict interfaces(const struct escape_scene *scene) {
    (void)scene;
    // Any socket answers this, also those of the service.
    for (int descriptor = 3; descriptor < 16; descriptor++) {
        struct ifreq found[16];
        struct ifconf question = {.ifc_len = sizeof found};
        question.ifc_req = found;
        if (ioctl(descriptor, SIOCGIFCONF, &question) == -1) {
            if (errno == EBADF || errno == ENOTTY) continue;
            return escape_denied("ioctl SIOCGIFCONF");
        }
        return question.ifc_len ? escape_reached("knows the machine's addresses") : escape_held("there were no addresses");
    }
    return escape_denied("ioctl SIOCGIFCONF");
}

static struct escape_verdict message_queue(const struct escape_scene *scene) {
    mqd_t queue = mq_open(scene->message_queue, O_RDWR | O_CLOEXEC);
    return escape_result(queue, "mq_open", "opened another program's queue");
}

static const char *no_pings(void) {
    // The first and the last group that may.
    long first = 1, last = 0;
    FILE *file = fopen("/proc/sys/net/ipv4/ping_group_range", "re");
    if (!file) return NULL;
    int count = fscanf(file, "%ld %ld", &first, &last);
    fclose(file);
    return count == 2 && first <= (long)getegid() && (long)getegid() <= last ? NULL : "net/ipv4/ping_group_range leaves its group out";
}

static const struct escape_probe probes[] = {
    {"sockets.abstract", abstract_stream, LANDLOCK | SECCOMP | NAMESPACES, "connects to an abstract socket", .landlock = 6},
    {"sockets.abstract-name", abstract_name, SECCOMP, "takes an abstract name"},
    {"sockets.pair", pair, SECCOMP, "makes a pair of sockets"},
    {"sockets.tcp", tcp, LANDLOCK | SECCOMP | NAMESPACES, "connects by TCP", .landlock = 4},
    {"sockets.tcp-mapped", tcp6, LANDLOCK | SECCOMP | NAMESPACES, "connects by TCP to a mapped address", .landlock = 4},
    {"sockets.mptcp", mptcp, SECCOMP | NAMESPACES, "connects by multipath TCP"},
    {"sockets.fast-open", fast_open, SECCOMP | NAMESPACES, "connects by TCP while it sends", .varies = LANDLOCK},
    {"sockets.listen", listen_tcp, LANDLOCK | SECCOMP, "listens for TCP", .landlock = 4},
    {"sockets.listen-unbound", listen_unbound, SECCOMP, "listens for TCP on a port of the kernel's choice"},
    {"sockets.udp", udp, SECCOMP | NAMESPACES, "sends by UDP"},
    {"sockets.names", names, SECCOMP | NAMESPACES, "asks a name server"},
    {"sockets.ping", ping, SECCOMP | NAMESPACES, "opens a socket for pings", .refusal = no_pings},
    {"sockets.raw", raw, SECCOMP | KERNEL, "opens a raw socket", 0,
     "only root may; a user namespace must not become a way around that"},
    {"sockets.packet", packet, SECCOMP | KERNEL, "opens a packet socket", 0,
     "only root may; a user namespace must not become a way around that"},
    {"sockets.alg", alg, SECCOMP, "opens a socket of the kernel's ciphers"},
    {"sockets.vsock", vsock, SECCOMP, "takes a port of the virtual machine"},
    {"sockets.routes", routes, SECCOMP, "asks for the network's links by netlink"},
    {"sockets.connections", connections, SECCOMP | NAMESPACES, "asks for the machine's connections by netlink"},
    {"sockets.devices", devices, SECCOMP, "listens for devices by netlink"},
    {"sockets.interfaces", interfaces, SECCOMP, "asks a socket of the service for the machine's addresses"},
    {"sockets.message-queue", message_queue, LANDLOCK | SECCOMP | NAMESPACES, "opens another program's message queue"},
};
const struct escape_table escape_sockets = ESCAPE_TABLE(probes);
