#include "fill.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, WORDS = PAGE / sizeof(uint64_t), MIB = 1024 * 1024 };

static uint64_t word(long page, long at)
{
	return (uint64_t)(page * WORDS + at + 1) * 0x9e3779b97f4a7c15u;
}

static int listen_at(int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	return fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 64) == 0 ? fd : -1;
}

static long wrong_pages(const volatile uint64_t *memory, long pages)
{
	long wrong = 0;

	for (long page = 0; page < pages; page++)
		wrong += memory[page * WORDS] != word(page, 0) || memory[page * WORDS + WORDS - 1] != word(page, WORDS - 1);
	return wrong;
}

/* Returns -1 if the child did not report. */
static long wrong_pages_of_child(const volatile uint64_t *memory, long pages)
{
	long wrong = -1;
	int ends[2];
	pid_t child;

	if (pipe(ends))
		return -1;
	child = fork();
	if (child == 0) {
		wrong = wrong_pages(memory, pages);
		_exit(write(ends[1], &wrong, sizeof wrong) != sizeof wrong);
	}
	close(ends[1]);
	if (read(ends[0], &wrong, sizeof wrong) != sizeof wrong)
		wrong = -1;
	close(ends[0]);
	waitpid(child, NULL, 0);
	return wrong;
}

int fill(int port, long mebibytes)
{
	long pages = mebibytes * (MIB / PAGE), count = 0;
	uint64_t *memory = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct pollfd doors[] = { { .events = POLLIN }, { .events = POLLIN } };

	if (memory == MAP_FAILED)
		return 1;
	for (long page = 0; page < pages; page++)
		for (long at = 0; at < WORDS; at++)
			memory[page * WORDS + at] = word(page, at);
	for (int i = 0; i < 2; i++)
		if ((doors[i].fd = listen_at(port + i)) < 0)
			return 1;
	for (;;) {
		if (poll(doors, 2, -1) < 0)
			continue;
		for (int i = 0; i < 2; i++) {
			int client = doors[i].revents ? accept(doors[i].fd, NULL, NULL) : -1;
			char text[64];

			if (client < 0)
				continue;
			if (i == 0)
				snprintf(text, sizeof text, "%ld\n", ++count);
			else /* the child first: it sees only pages that were present at the fork */
				snprintf(text, sizeof text, "%ld %ld\n", wrong_pages_of_child(memory, pages), wrong_pages(memory, pages));
			if (send(client, text, strlen(text), MSG_NOSIGNAL) < 0)
				fprintf(stderr, "test-container: a client went away\n");
			close(client);
		}
	}
}
