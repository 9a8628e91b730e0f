/* System calls that fail on demand, or kill the process: loaded before the C library (LD_PRELOAD), so that Python, Arrow and every other
   library of the process go through it. Only calls that change files under one folder are counted; the `at`-th fails. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define MOST_FILES 65536

static char under[4096];
static unsigned char watched[MOST_FILES];
static int armed, at, code, lasting, seen;

/* Fail the at-th call with this errno, and all after it if `lasts`; without an errno, kill the process there. */
void faults_arm(const char *folder, int place, int number, int lasts) {
    strncpy(under, folder, sizeof under - 1);
    at = place, code = number, lasting = lasts, seen = 0, armed = 1;
}

/* Back to normal; how many calls were counted. */
int faults_disarm(void) {
    armed = 0;
    return seen;
}

static int inside(const char *path) { return armed && path && !strncmp(path, under, strlen(under)); }
static int on(int fd) { return armed && fd >= 0 && fd < MOST_FILES && watched[fd]; }

static int fails(void) {
    int number = ++seen;
    if (number != at && !(lasting && number > at)) return 0;
    if (!code) raise(SIGKILL);
    errno = code;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int noted(int fd, const char *path) {
    if (fd >= 0 && fd < MOST_FILES) watched[fd] = inside(path);
    return fd;
}

#define OPENING(flags, path) (((flags) & (O_WRONLY | O_RDWR | O_CREAT)) && inside(path) && fails())
#define MODE(flags, last) \
    va_list rest; va_start(rest, last); mode_t mode = (flags) & O_CREAT ? va_arg(rest, mode_t) : 0; va_end(rest)

int open(const char *path, int flags, ...) {
    MODE(flags, flags);
    return OPENING(flags, path) ? -1 : noted(REAL(open)(path, flags, mode), path);
}
int open64(const char *path, int flags, ...) {
    MODE(flags, flags);
    return OPENING(flags, path) ? -1 : noted(REAL(open64)(path, flags, mode), path);
}
int openat(int folder, const char *path, int flags, ...) {
    MODE(flags, flags);
    return OPENING(flags, path) ? -1 : noted(REAL(openat)(folder, path, flags, mode), path);
}
int openat64(int folder, const char *path, int flags, ...) {
    MODE(flags, flags);
    return OPENING(flags, path) ? -1 : noted(REAL(openat64)(folder, path, flags, mode), path);
}

/* A disk that is full for good takes half of what is written first, as a real one does. */
ssize_t write(int fd, const void *data, size_t size) {
    int first = on(fd) && lasting && code && seen + 1 == at && size > 1;
    if (on(fd) && fails()) return first ? REAL(write)(fd, data, size / 2) : -1;
    return REAL(write)(fd, data, size);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t place) {
    return on(fd) && fails() ? -1 : REAL(pwrite64)(fd, data, size, place);
}
int fsync(int fd) { return on(fd) && fails() ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return on(fd) && fails() ? -1 : REAL(fdatasync)(fd); }
int ftruncate(int fd, off_t size) { return on(fd) && fails() ? -1 : REAL(ftruncate)(fd, size); }
int ftruncate64(int fd, off64_t size) { return on(fd) && fails() ? -1 : REAL(ftruncate64)(fd, size); }
int fchmod(int fd, mode_t mode) { return on(fd) && fails() ? -1 : REAL(fchmod)(fd, mode); }
int fchown(int fd, uid_t user, gid_t group) { return on(fd) && fails() ? -1 : REAL(fchown)(fd, user, group); }
int close(int fd) {
    if (fd >= 0 && fd < MOST_FILES) watched[fd] = 0;
    return REAL(close)(fd);
}
int rename(const char *old, const char *new) { return inside(new) && fails() ? -1 : REAL(rename)(old, new); }
int renameat(int a, const char *old, int b, const char *new) {
    return inside(new) && fails() ? -1 : REAL(renameat)(a, old, b, new);
}
int link(const char *old, const char *new) { return inside(new) && fails() ? -1 : REAL(link)(old, new); }
int linkat(int a, const char *old, int b, const char *new, int flags) {
    return inside(new) && fails() ? -1 : REAL(linkat)(a, old, b, new, flags);
}
int unlink(const char *path) { return inside(path) && fails() ? -1 : REAL(unlink)(path); }
int unlinkat(int folder, const char *path, int flags) {
    return inside(path) && fails() ? -1 : REAL(unlinkat)(folder, path, flags);
}
