/* Mounts the file systems in memory: for generations, and for the programs that work on them. */
#ifndef MEMORY_DIR_H
#define MEMORY_DIR_H

#include <stdbool.h>
#include <stdint.h>

/* The mount source, which identifies our mounts. */
#define MOUNT_SOURCE "understudy"

/* Mounts a tmpfs of that size at `path` (made if missing, 0700), or resizes an existing one. False with errno. */
bool memory_dir_mount(const char *path, int64_t bytes);

/* Resizes an existing tmpfs. False with errno, or if none is mounted. */
bool memory_dir_resize(const char *path, int64_t bytes);

/* Mounts a tmpfs for executables at `path` (made if missing, 0755), unless one is mounted. False with errno. */
bool program_dir_mount(const char *path);

#endif
