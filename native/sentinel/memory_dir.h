/* The file systems in memory: of the generations, and of the programs that work on them. */
#ifndef MEMORY_DIR_H
#define MEMORY_DIR_H

#include <stdbool.h>
#include <stdint.h>

/* By which its mounts are known again. */
#define MOUNT_SOURCE "understudy"

/* Mounts a tmpfs of that size at `path` (made if missing, 0700), or resizes the one there. False with errno. */
bool memory_dir_mount(const char *path, int64_t bytes);

/* Only the one that is there. False with errno, or when there is none. */
bool memory_dir_resize(const char *path, int64_t bytes);

/* Mounts a tmpfs at `path` (made if missing, 0755) from which programs can be run, unless there is one. False with errno. */
bool program_dir_mount(const char *path);

#endif
