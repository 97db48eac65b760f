/*
 * A file system that keeps no locks, for one process: loaded with LD_PRELOAD. LOCKS=refuse answers each lock with ENOLCK, as NFS
 * without its lock service does; LOCKS=grant gives everybody every lock, as some shared folders of virtual machines do.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int fcntl(int file, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void *argument = va_arg(rest, void *);
  va_end(rest);
  if (command != F_OFD_SETLK) return (int)syscall(SYS_fcntl, file, command, argument);
  if (strcmp(getenv("LOCKS"), "grant") == 0) return 0;
  errno = ENOLCK;
  return -1;
}
