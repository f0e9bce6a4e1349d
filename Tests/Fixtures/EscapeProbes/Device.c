// The device around the extension: its database and sockets, other apps' containers, builds, the development authority.
#define _GNU_SOURCE
#include "Families.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static struct escape_verdict read_file(const char *path) { return escape_reading(open(path, O_RDONLY | O_CLOEXEC), "open"); }

static struct escape_verdict write_file(const char *path) {
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file == -1) return escape_denied("open");
    return escape_result(write(file, "x", 1), "write", "wrote to it");
}

static struct escape_verdict read_database(const struct escape_scene *scene) { return read_file(scene->database); }
static struct escape_verdict write_database(const struct escape_scene *scene) { return write_file(scene->database); }
static struct escape_verdict remove_database(const struct escape_scene *scene) {
    return escape_result(unlink(scene->database), "unlink", "removed it");
}

static struct escape_verdict list_device(const struct escape_scene *scene) {
    DIR *folder = opendir(scene->device);
    if (!folder) return escape_denied("opendir");
    int is_there = 0;
    for (struct dirent *entry; (entry = readdir(folder));) is_there |= !strcmp(entry->d_name, "device.sqlite");
    closedir(folder);
    return is_there ? escape_reached("listed it") : escape_held("sees the folders above its own");
}

static struct escape_verdict list_containers(const struct escape_scene *scene) {
    static const char *const folders[] = {"Containers", "Containers/Group", "Containers/Extension"};
    int others = 0, opened = 0;
    for (int index = 0; index < 3; index++) {
        DIR *folder = opendir(escape_path(scene->device, folders[index]));
        if (!folder) continue;
        opened++;
        for (struct dirent *entry; (entry = readdir(folder));)
            others |= strchr(entry->d_name, '~') && !strstr(scene->group, entry->d_name) && !strstr(scene->home, entry->d_name);
        closedir(folder);
    }
    if (others) return escape_reached("knows the names of other apps' containers");
    return opened ? escape_held("sees its own containers only") : escape_denied("opendir");
}

static struct escape_verdict call_service(const struct escape_scene *scene) {
    int socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ == -1) return escape_denied("socket");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, scene->service_socket, sizeof address.sun_path - 1);
    return escape_result(connect(socket_, (struct sockaddr *)&address, sizeof address), "connect", "is connected to the service");
}

static struct escape_verdict replace_socket(const struct escape_scene *scene) {
    return escape_result(unlink(scene->service_socket), "unlink", "removed the service's socket");
}

static struct escape_verdict read_partial(const struct escape_scene *scene) {
    return read_file(escape_path(scene->device, "Transfers/transfer.partial"));
}
static struct escape_verdict read_authority(const struct escape_scene *scene) {
    return read_file(escape_path(scene->device, "DevelopmentCA/key.pem"));
}
static struct escape_verdict read_other_group(const struct escape_scene *scene) {
    return read_file(escape_path(scene->other_group, "file"));
}
static struct escape_verdict write_other_group(const struct escape_scene *scene) {
    return write_file(escape_path(scene->other_group, "file"));
}
static struct escape_verdict read_other_home(const struct escape_scene *scene) {
    return read_file(escape_path(scene->other_home, "file"));
}
static struct escape_verdict write_other_home(const struct escape_scene *scene) {
    return write_file(escape_path(scene->other_home, "file"));
}
static struct escape_verdict beside_group(const struct escape_scene *scene) {
    return escape_result(
        mkdir(escape_path(scene->group, "../group.made"), 0700), "mkdir", "made a container beside its own");
}
static struct escape_verdict beside_home(const struct escape_scene *scene) {
    return write_file(escape_path(scene->home, "../beside"));
}
static struct escape_verdict replace_code(const struct escape_scene *scene) {
    (void)scene;
    return escape_result(unlink(escape_own_executable()), "unlink", "removed its code");
}
static struct escape_verdict write_bundle(const struct escape_scene *scene) {
    return write_file(escape_path(scene->bundle, "made"));
}
static struct escape_verdict write_list(const struct escape_scene *scene) {
    return write_file(escape_path(scene->bundle, "Info.plist"));
}
static struct escape_verdict write_app(const struct escape_scene *scene) {
    return write_file(escape_path(scene->app, "Frameworks/made.so"));
}
static struct escape_verdict read_app(const struct escape_scene *scene) {
    return read_file(escape_path(scene->app, "Info.plist"));
}

static const struct escape_probe probes[] = {
    {"device.read-database", read_database, LANDLOCK | NAMESPACES, "reads the device's database"},
    {"device.write-database", write_database, LANDLOCK | NAMESPACES, "writes to the device's database"},
    {"device.remove-database", remove_database, LANDLOCK | NAMESPACES, "removes the device's database"},
    {"device.list", list_device, LANDLOCK | NAMESPACES, "lists the device's folder"},
    {"device.list-containers", list_containers, LANDLOCK | NAMESPACES, "lists the folders in which containers lie"},
    {"device.socket", call_service, SECCOMP | NAMESPACES, "connects to the service's socket", .varies = LANDLOCK},
    {"device.remove-socket", replace_socket, LANDLOCK | NAMESPACES, "removes the service's socket"},
    {"device.transfers", read_partial, LANDLOCK | NAMESPACES, "reads an unfinished download"},
    {"device.authority", read_authority, LANDLOCK | NAMESPACES, "reads the key of the development authority"},
    {"device.read-other-group", read_other_group, LANDLOCK | NAMESPACES, "reads another app's group container"},
    {"device.write-other-group", write_other_group, LANDLOCK | NAMESPACES, "writes to another app's group container"},
    {"device.read-other-home", read_other_home, LANDLOCK | NAMESPACES, "reads another extension's home"},
    {"device.write-other-home", write_other_home, LANDLOCK | NAMESPACES, "writes to another extension's home"},
    {"device.beside-group", beside_group, LANDLOCK | NAMESPACES, "makes a group container"},
    {"device.beside-home", beside_home, LANDLOCK | NAMESPACES, "writes beside its home"},
    {"device.remove-code", replace_code, LANDLOCK | NAMESPACES, "removes its own code"},
    {"device.write-bundle", write_bundle, LANDLOCK | NAMESPACES, "makes a file in its own bundle"},
    {"device.write-list", write_list, LANDLOCK | NAMESPACES, "writes to its own Info.plist"},
    {"device.write-app", write_app, LANDLOCK | NAMESPACES, "makes a library in the app's Frameworks"},
    {"device.read-app", read_app, LANDLOCK | NAMESPACES, "reads the app's Info.plist"},
};
const struct escape_table escape_device = ESCAPE_TABLE(probes);
