/*
 * System calls of one process made to fail, to hang, or to be its last; and a clock of its own. Loaded with LD_PRELOAD
 * (system-calls.ts compiles it and writes the rules); reaches the engine too, which calls libc like everybody else and
 * reads the clock from the vDSO.
 *
 * FAULTS_CONTROL names a file: 8 bytes of version, then one rule a line, `id call action argument skip times pattern`. A rule
 * holds for calls whose path contains the pattern; the first `skip` of them pass, the next `times` meet the action:
 *
 *   kill-before, kill-after   SIGKILL to this process, the call not made or made
 *   hold ms                   waits, or until the rule is gone
 *   fail errno                is not made
 *
 * `clock step milliseconds` is a rule too. What meets an action is written to the file's name and `.log`, a line each.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define CONTROL_BYTES 65536
#define RULES_MAX 64

typedef struct {
  long id, argument, skip, times, seen;
  char call[16], action[16], pattern[512];
} Rule;

typedef struct {
  atomic_ulong version;
  char text[CONTROL_BYTES - 8];
} Control;

static Control *control;
static char log_path[PATH_MAX];
static Rule rules[RULES_MAX];
static int rule_count;
static unsigned long read_version;
static atomic_flag lock = ATOMIC_FLAG_INIT;
static atomic_long clock_step_ms;

static void enter(void) {
  while (atomic_flag_test_and_set(&lock)) {
  }
}
static void leave(void) { atomic_flag_clear(&lock); }

/* With the lock held. Rules that were there before keep their count. */
static void read_rules(void) {
  unsigned long version = atomic_load(&control->version);
  if (version == read_version) return;
  Rule before[RULES_MAX];
  int count_before = rule_count;
  memcpy(before, rules, sizeof rules);
  rule_count = 0;
  long step = 0;
  const char *line = control->text;
  while (*line != '\0' && rule_count < RULES_MAX) {
    Rule rule = {0};
    int at = 0;
    if (sscanf(line, "%ld %15s %15s %ld %ld %ld %n", &rule.id, rule.call, rule.action, &rule.argument, &rule.skip,
               &rule.times, &at) == 6) {
      size_t length = strcspn(line + at, "\n");
      if (length >= sizeof rule.pattern) length = sizeof rule.pattern - 1;
      memcpy(rule.pattern, line + at, length);
      for (int i = 0; i < count_before; i++)
        if (before[i].id == rule.id) rule.seen = before[i].seen;
      if (strcmp(rule.call, "clock") == 0) step += rule.argument;
      else rules[rule_count++] = rule;
    }
    line += strcspn(line, "\n");
    if (*line == '\n') line++;
  }
  atomic_store(&clock_step_ms, step);
  read_version = version;
}

static void look_at_rules(void) {
  if (control == NULL || atomic_load(&control->version) == read_version) return;
  enter();
  read_rules();
  leave();
}

static int is_there(long id) {
  enter();
  read_rules();
  int there = 0;
  for (int i = 0; i < rule_count; i++) there |= rules[i].id == id;
  leave();
  return there;
}

/* Without libc's own calls, which are ours. */
static void tell(const Rule *rule, const char *path) {
  char text[PATH_MAX + 64];
  int length = snprintf(text, sizeof text, "%ld %s %s\n", rule->id, rule->call, path);
  long fd = syscall(SYS_openat, AT_FDCWD, log_path, O_WRONLY | O_APPEND | O_CREAT, 0666);
  if (fd < 0) return;
  syscall(SYS_write, fd, text, length);
  syscall(SYS_close, fd);
}

static void die(void) {
  syscall(SYS_kill, getpid(), SIGKILL);
  for (;;) pause();
}

/* The rule that this call meets, if any. */
static int meets(const char *call, const char *path, Rule *met) {
  if (control == NULL) return 0;
  if (atomic_load(&control->version) == read_version && rule_count == 0) return 0;
  int found = 0;
  enter();
  read_rules();
  for (int i = 0; i < rule_count && !found; i++) {
    Rule *rule = &rules[i];
    if (strcmp(rule->call, call) != 0 || strstr(path, rule->pattern) == NULL) continue;
    long seen = rule->seen++;
    if (seen < rule->skip || seen >= rule->skip + rule->times) continue;
    *met = *rule;
    found = 1;
  }
  leave();
  if (found) tell(met, path);
  return found;
}

/* 1 when the call is not to be made: errno is set. */
static int before_call(const Rule *met) {
  if (strcmp(met->action, "kill-before") == 0) die();
  if (strcmp(met->action, "hold") == 0) {
    struct timespec moment = {0, 10 * 1000 * 1000};
    for (long waited = 0; waited < met->argument && is_there(met->id); waited += 10)
      syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &moment, NULL);
  }
  if (strcmp(met->action, "fail") != 0) return 0;
  errno = (int)met->argument;
  return 1;
}

static void after_call(const Rule *met) {
  if (strcmp(met->action, "kill-after") == 0) die();
}

#define WITH_FAULT(call, path, type, work)         \
  do {                                             \
    Rule met;                                      \
    if (!meets(call, path, &met)) return work;     \
    if (before_call(&met)) return -1;              \
    type result = work;                            \
    int error = errno;                             \
    after_call(&met);                              \
    errno = error;                                 \
    return result;                                 \
  } while (0)


static const char *path_of(int fd, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  long length = syscall(SYS_readlink, link, path, PATH_MAX - 1);
  path[length < 0 ? 0 : length] = '\0';
  return path;
}

static int is_asked(void) {
  return control != NULL && (rule_count > 0 || atomic_load(&control->version) != read_version);
}

/* Of a move the two names, one after the other. */
static const char *both(const char *from, const char *to, char *text) {
  snprintf(text, 2 * PATH_MAX, "%s -> %s", from, to);
  return text;
}

int rename(const char *from, const char *to) {
  char text[2 * PATH_MAX];
  WITH_FAULT("rename", both(from, to, text), int, (int)syscall(SYS_rename, from, to));
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags) {
  char text[2 * PATH_MAX];
  WITH_FAULT("rename", both(from, to, text), int, (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags));
}

int fsync(int fd) {
  char path[PATH_MAX];
  WITH_FAULT("sync", is_asked() ? path_of(fd, path) : "", int, (int)syscall(SYS_fsync, fd));
}

int fdatasync(int fd) {
  char path[PATH_MAX];
  WITH_FAULT("sync", is_asked() ? path_of(fd, path) : "", int, (int)syscall(SYS_fdatasync, fd));
}

ssize_t write(int fd, const void *bytes, size_t count) {
  char path[PATH_MAX];
  WITH_FAULT("write", is_asked() ? path_of(fd, path) : "", ssize_t, syscall(SYS_write, fd, bytes, count));
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
  char path[PATH_MAX];
  WITH_FAULT("write", is_asked() ? path_of(fd, path) : "", ssize_t, syscall(SYS_pwrite64, fd, bytes, count, at));
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) { return pwrite64(fd, bytes, count, at); }

static int opened(int dir, const char *path, int flags, unsigned mode) {
  WITH_FAULT("open", path, int, (int)syscall(SYS_openat, dir, path, flags, mode));
}

#define MODE_OF(flags, last)                          \
  unsigned mode = 0;                                  \
  if ((flags) & (O_CREAT | O_TMPFILE)) {              \
    va_list rest;                                     \
    va_start(rest, last);                             \
    mode = va_arg(rest, unsigned);                    \
    va_end(rest);                                     \
  }

int open(const char *path, int flags, ...) {
  MODE_OF(flags, flags)
  return opened(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
  MODE_OF(flags, flags)
  return opened(AT_FDCWD, path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...) {
  MODE_OF(flags, flags)
  return opened(dir, path, flags, mode);
}

/* The engine and Node ask the vDSO for the time without asking libc: its functions are made to jump to these. */
static int stepped_clock_gettime(clockid_t clock, struct timespec *now) {
  look_at_rules();
  long result = syscall(SYS_clock_gettime, clock, now);
  long step = atomic_load(&clock_step_ms);
  if (result != 0 || step == 0 || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return (int)result;
  long long ns = now->tv_nsec + (step % 1000) * 1000000LL;
  now->tv_sec += step / 1000 + (ns < 0 ? -1 : ns >= 1000000000 ? 1 : 0);
  now->tv_nsec = ns < 0 ? ns + 1000000000 : ns >= 1000000000 ? ns - 1000000000 : ns;
  return 0;
}

static int stepped_gettimeofday(struct timeval *now, void *zone) {
  struct timespec precise;
  (void)zone;
  if (now == NULL) return 0;
  stepped_clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

static time_t stepped_time(time_t *seconds) {
  struct timespec precise;
  stepped_clock_gettime(CLOCK_REALTIME, &precise);
  if (seconds != NULL) *seconds = precise.tv_sec;
  return precise.tv_sec;
}

/* The kernel's clock goes on as before: whoever waits until a time of the stepped one means as much later or earlier. */
static const struct timespec *unstepped(const struct timespec *end, struct timespec *other) {
  long step = atomic_load(&clock_step_ms);
  if (step == 0 || end == NULL || end->tv_sec < 1000000000) return end; /* none, or of another clock */
  long long ns = end->tv_nsec - (step % 1000) * 1000000LL;
  other->tv_sec = end->tv_sec - step / 1000 + (ns < 0 ? -1 : ns >= 1000000000 ? 1 : 0);
  other->tv_nsec = ns < 0 ? ns + 1000000000 : ns >= 1000000000 ? ns - 1000000000 : ns;
  return other;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *end) {
  static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
  /* There is an older one of that name, for conditions of another shape. */
  if (real == NULL) real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
  struct timespec other;
  return real(condition, mutex, unstepped(end, &other));
}

int sem_timedwait(sem_t *semaphore, const struct timespec *end) {
  static int (*real)(sem_t *, const struct timespec *);
  if (real == NULL) real = dlsym(RTLD_NEXT, "sem_timedwait");
  struct timespec other;
  return real(semaphore, unstepped(end, &other));
}

#if defined(__x86_64__)
/* By way of the memory's file: the pages of the vDSO are not to be written, and no part of them may be made so. */
static void jump(char *from, void *to) {
  unsigned char code[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0}; /* mov rax, to; jmp rax */
  memcpy(code + 2, &to, 8);
  long memory = syscall(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDWR);
  if (memory < 0 || syscall(SYS_pwrite64, memory, code, sizeof code, from) != sizeof code)
    fprintf(stderr, "faults: the clock cannot be stepped: %s\n", strerror(errno));
  if (memory >= 0) syscall(SYS_close, memory);
}

static void take_over_clock(void) {
  char *base = (char *)getauxval(AT_SYSINFO_EHDR);
  if (base == NULL) return;
  Elf64_Ehdr *header = (Elf64_Ehdr *)base;
  Elf64_Phdr *segments = (Elf64_Phdr *)(base + header->e_phoff);
  Elf64_Sym *symbols = NULL;
  const char *names = NULL;
  unsigned *hash = NULL;
  for (int i = 0; i < header->e_phnum; i++) {
    if (segments[i].p_type != PT_DYNAMIC) continue;
    for (Elf64_Dyn *entry = (Elf64_Dyn *)(base + segments[i].p_offset); entry->d_tag != DT_NULL; entry++) {
      if (entry->d_tag == DT_SYMTAB) symbols = (Elf64_Sym *)(base + entry->d_un.d_ptr);
      if (entry->d_tag == DT_STRTAB) names = base + entry->d_un.d_ptr;
      if (entry->d_tag == DT_HASH) hash = (unsigned *)(base + entry->d_un.d_ptr);
    }
  }
  /* Without the old table of hashes the number of symbols is not told; the table of names stands behind them. */
  size_t count = hash != NULL ? hash[1] : ((const char *)names - (const char *)symbols) / sizeof(Elf64_Sym);
  for (size_t i = 0; symbols != NULL && i < count; i++) {
    const char *name = names + symbols[i].st_name;
    char *code = base + symbols[i].st_value;
    if (strcmp(name, "__vdso_clock_gettime") == 0) jump(code, stepped_clock_gettime);
    if (strcmp(name, "__vdso_gettimeofday") == 0) jump(code, stepped_gettimeofday);
    if (strcmp(name, "__vdso_time") == 0) jump(code, stepped_time);
  }
}
#else
static void take_over_clock(void) { fprintf(stderr, "faults: the clock can be stepped on x86-64 only\n"); }
#endif

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("FAULTS_CONTROL");
  if (path == NULL) return;
  long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
  if (fd < 0) return;
  snprintf(log_path, sizeof log_path, "%s.log", path);
  void *mapped = mmap(NULL, CONTROL_BYTES, PROT_READ, MAP_SHARED, (int)fd, 0);
  syscall(SYS_close, fd);
  if (mapped == MAP_FAILED) return;
  control = mapped;
  take_over_clock();
  look_at_rules();
}
