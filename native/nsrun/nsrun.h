#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "fail.h"

/* Returns the exit code of a child, or 128 + signal if a signal ended it. */
int wait_for(pid_t child);

/* Call it before there are children, and before another /proc is mounted over this one. */
void know_children(void);

/* Kills all children, including adopted orphans; false if it cannot list them. */
bool kill_children(void);

/* The rights of a program. */
struct rights {
	unsigned long long kept; /* capabilities; all bits: keep everything */
	bool filtered; /* has a filter of system calls */
	bool secluded; /* its open directories have no parent directories */
	bool copies_directory; /* gets a copy of 201 that it can mount */
};

/*
 * Reads the purpose of the program from UNDERSTUDY_FOR and removes the variable; without it the program keeps all
 * rights. Call it while /proc shows the container's first process by this number.
 */
int rights_of_purpose(pid_t container, struct rights *rights);

/* Gives up all other rights, for good. */
int give_up_rights(const struct rights *rights);

/*
 * Replaces the directories open as 200 to 205 with detached copies that have no parent; call it outside of containers.
 * With `all` false it leaves 201, because the program mounts a copy of it, and the kernel cannot copy a detached copy.
 */
int seclude_directories(bool all);

/* Runs as CRIU's action script for one stage; most stages need nothing. Returns an exit code. */
int action_script(void);

