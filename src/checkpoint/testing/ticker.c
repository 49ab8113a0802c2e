/*
 * Something to dump: two threads, some megabytes of memory of which a little changes all the time, and a periodic timer
 * whose expiries stay unread until DIR/go exists; from then on their number is in DIR/ticks.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { words = 1 << 20 };

static uint64_t memory[words];

static void *wait_for_ever(void *none)
{
	while (pause() != 0)
		;
	return none;
}

int main(int argc, char **argv)
{
	const struct itimerspec every = { .it_interval = { .tv_nsec = 20000000 }, .it_value = { .tv_nsec = 20000000 } };
	uint64_t state = 88172645463325252u, total = 0;
	pthread_t thread;
	int timer = timerfd_create(CLOCK_MONOTONIC, 0);

	if (argc != 2 || chdir(argv[1]) != 0 || timer < 0 || timerfd_settime(timer, 0, &every, NULL) != 0)
		return 1;
	if (pthread_create(&thread, NULL, wait_for_ever, NULL) != 0)
		return 1;
	for (int i = 0; i < words; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		memory[i] = state;
	}
	close(open("ready", O_WRONLY | O_CREAT, 0600));
	for (int i = 0;; i = (i + 1) % 10) {
		struct pollfd readable = { .fd = timer, .events = POLLIN };
		uint64_t expired;

		usleep(5000);
		memory[i * 512]++;
		if (access("go", F_OK) == 0 && poll(&readable, 1, 0) == 1 && read(timer, &expired, sizeof expired) > 0) {
			char text[32];
			int file = open("ticks", O_WRONLY | O_CREAT, 0600);

			total += expired;
			if (file < 0 || write(file, text, (size_t)snprintf(text, sizeof text, "%020ju", (uintmax_t)total)) < 0)
				return 1;
			close(file);
		}
	}
}
