// A process of the same user that has nothing to do with the extension. It listens on every kind of socket and has shared
// memory; probes try to reach it.
//
//     EscapeBystander <path of a socket to make> <name for the abstract socket and the message queue>
//
// It prints "ready <tcp port> <udp port> <key of its shared memory>". For each line that it reads it prints one: the kinds
// of sockets at which somebody came, and "signal" where somebody sent SIGURG, or "nobody". At the end of its input it
// removes what it made.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <signal.h>
#include <unistd.h>

enum { backlog = 16, key_tries = 64 };

static void must(int is_true, const char *what) {
    if (is_true) return;
    perror(what);
    exit(1);
}

static int unix_listener(const char *name, int is_abstract) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    must(strlen(name) < sizeof address.sun_path - 1, "a short name");
    strcpy(address.sun_path + is_abstract, name);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name) + 1);
    must(bind(listener, (struct sockaddr *)&address, length) == 0, "bind");
    must(listen(listener, backlog) == 0, "listen");
    return listener;
}

static int inet_socket(int type, int *port) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    int made = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    must(bind(made, (struct sockaddr *)&address, length) == 0, "bind");
    must(getsockname(made, (struct sockaddr *)&address, &length) == 0, "getsockname");
    *port = ntohs(address.sin_port);
    return made;
}

static int shared_memory(int *key) {
    for (int try = 0; try < key_tries; try++) {
        *key = 0x45530000 + ((int)getpid() * key_tries + try) % 0x10000;
        int memory = shmget(*key, 4096, IPC_CREAT | IPC_EXCL | 0600);
        if (memory != -1) return memory;
    }
    must(0, "shmget");
    return -1;
}

static int came(int listener) {
    int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (connection == -1) return 0;
    close(connection);
    return 1;
}

static volatile sig_atomic_t was_signalled;
static void note_signal(int number) { was_signalled = number; }

int main(int count, char **words) {
    must(count == 3, "two arguments");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigaction(SIGURG, &(struct sigaction){.sa_handler = note_signal, .sa_flags = SA_RESTART}, NULL);
    setvbuf(stdout, NULL, _IOLBF, 0);
    char queue_name[128];
    snprintf(queue_name, sizeof queue_name, "/%s", words[2]);
    // Left by one that was killed.
    mq_unlink(queue_name);
    unlink(words[1]);
    int tcp_port, udp_port, key;
    int path = unix_listener(words[1], 0), abstract = unix_listener(words[2], 1);
    int tcp = inet_socket(SOCK_STREAM, &tcp_port), udp = inet_socket(SOCK_DGRAM, &udp_port);
    must(listen(tcp, backlog) == 0, "listen");
    int memory = shared_memory(&key);
    mqd_t queue = mq_open(queue_name, O_RDWR | O_CREAT | O_EXCL, 0600, &(struct mq_attr){.mq_maxmsg = 1, .mq_msgsize = 16});
    must(queue != -1, "mq_open");
    printf("ready %d %d %d\n", tcp_port, udp_port, key);
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        char byte;
        int by_path = came(path), by_name = came(abstract), by_tcp = came(tcp), by_udp = recv(udp, &byte, 1, 0) >= 0;
        if (by_path + by_name + by_tcp + by_udp == 0 && !was_signalled) puts("nobody");
        else
            printf("%s%s%s%s%s\n", by_path ? "socket " : "", by_name ? "abstract " : "", by_tcp ? "tcp " : "",
                   by_udp ? "udp " : "", was_signalled ? "signal" : "");
    }
    mq_unlink(queue_name);
    shmctl(memory, IPC_RMID, NULL);
    unlink(words[1]);
    return 0;
}
