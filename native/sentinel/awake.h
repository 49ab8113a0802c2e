/*
 * Processors that do not fall asleep while a pod stands still. What works on it goes from one process to another some
 * sixty times; each time the other one's processor has to be woken first, which takes longer than what it then does: 40 us
 * of 50 in a virtual machine, on real ones what leaving a deep state of rest costs.
 * https://docs.kernel.org/power/pm_qos_interface.html
 */
#ifndef AWAKE_H
#define AWAKE_H

#include <stdbool.h>
#include <stdint.h>

struct awake {
	int fd;
	bool on;
	int64_t since, period, used;
};

/* A kernel without that interface is one on which nothing changes. The kernel takes it back if this process ends. */
void awake_open(struct awake *awake);

/* Whether somebody stands still now. Returns when to be told again. */
int64_t awake_while(struct awake *awake, bool wanted, int64_t now);

#endif
