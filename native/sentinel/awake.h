/*
 * Keeps processors out of deep idle states while a pod is stopped. The work on a stopped pod passes from one process to
 * another some sixty times. Each time the other processor has to wake first, and that takes longer than the work
 * itself: 40 us of 50 in a virtual machine, and on real hardware the exit latency of the deep idle state.
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

/*
 * Opens the kernel's interface; without it awake_while() does nothing. The kernel drops the request if this process
 * ends.
 */
void awake_open(struct awake *awake);

/* Takes whether any stop is in effect (`wanted`). Returns the time of the next call. */
int64_t awake_while(struct awake *awake, bool wanted, int64_t now);

#endif
