/* Long because it has a thread for each way to change memory. */
#include "storm.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PAUSE_US = 300, STACK = 8 * 1024 * 1024 };
static const size_t MIB = 1024 * 1024;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool paused;
static int resting, started;
static unsigned long steps;

/* The end of a step of a thread: a place to pause at. */
static void rest(void)
{
	pthread_mutex_lock(&lock);
	steps++;
	if (paused) {
		resting++;
		pthread_cond_broadcast(&changed);
		while (paused)
			pthread_cond_wait(&changed, &lock);
		resting--;
	}
	pthread_mutex_unlock(&lock);
	usleep(PAUSE_US);
}

static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static size_t page_in(uint64_t *state, size_t size)
{
	return (size_t)(draw(state) % size) & ~(size_t)(PAGE - 1);
}

/* Held where the kernel chooses an address, and while a mapping leaves a hole: no thread may get the hole. */
static pthread_mutex_t addresses = PTHREAD_MUTEX_INITIALIZER;

static char *map(size_t size)
{
	char *memory;

	pthread_mutex_lock(&addresses);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_mutex_unlock(&addresses);
	if (memory == MAP_FAILED)
		_exit(2);
	return memory;
}

static void *stores(void *seed)
{
	uint64_t state = (uintptr_t)seed;
	char *memory = map(32 * MIB);

	memset(memory, 1, 32 * MIB);
	for (;; rest())
		for (int i = 0; i < 32; i++)
			*(uint64_t *)(void *)(memory + draw(&state) % (32 * MIB / 8) * 8) = state;
	return NULL;
}

static void *drops(void *seed)
{
	uint64_t state = (uintptr_t)seed;
	char *memory = map(16 * MIB);
	volatile char sum;

	for (;; rest()) {
		const size_t at = page_in(&state, 14 * MIB), other = page_in(&state, 12 * MIB);

		memset(memory + at, (int)state, page_in(&state, MIB));
		madvise(memory + other, page_in(&state, 4 * MIB), state & 64 ? MADV_DONTNEED : MADV_FREE);
		sum = memory[other];
		(void)sum;
	}
	return NULL;
}

static void *moves(void *seed)
{
	uint64_t state = (uintptr_t)seed;
	size_t size = 2 * MIB;
	char *memory = map(size);

	for (;; rest()) {
		const size_t wanted = (size_t)(1 + draw(&state) % 4) * MIB;
		char *moved;

		memset(memory + page_in(&state, size), (int)state, PAGE);
		pthread_mutex_lock(&addresses);
		moved = mremap(memory, size, wanted, MREMAP_MAYMOVE);
		pthread_mutex_unlock(&addresses);
		if (moved == MAP_FAILED)
			continue;
		memory = moved;
		size = wanted;
		if (state & 128) {
			moved = mremap(memory, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, map(size));
			memory = moved == MAP_FAILED ? memory : moved;
		}
		memset(memory + size - PAGE, (int)(state >> 9), PAGE);
	}
	return NULL;
}

/* Moves memory, and leaves a mapping in its place. */
static void move(char *from, char *to, size_t size)
{
	pthread_mutex_lock(&addresses);
	mremap(from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	mmap(from, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	pthread_mutex_unlock(&addresses);
}

/* Moves a neighbour away and back: the kernel unregisters both then. */
static void *neighbours(void *seed)
{
	uint64_t state = (uintptr_t)seed;
	char *first = map(2 * MIB), *second = first + MIB, *elsewhere = map(3 * MIB) + MIB;

	memset(first, 1, 2 * MIB);
	for (bool away = false;; away = !away, rest()) {
		char *from = away ? elsewhere : first, *to = away ? first : elsewhere;

		/* Stays away for some steps, and at home as long. */
		if (draw(&state) % 8 == 0)
			move(from, to, MIB);
		else
			away = !away;
		for (int i = 0; i < 4; i++)
			second[page_in(&state, MIB) + 8] = (char)state;
	}
	return NULL;
}

static void *replaces(void *seed)
{
	uint64_t state = (uintptr_t)seed;
	char *memory = map(MIB);

	for (;; rest()) {
		mmap(memory, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		for (size_t at = 0; at < MIB; at += (size_t)(1 + draw(&state) % 8) * PAGE)
			memory[at] = (char)state;
	}
	return NULL;
}

static void *forks(void *seed)
{
	uint64_t state = (uintptr_t)seed;
	char *memory = map(8 * MIB);

	memset(memory, 2, 8 * MIB);
	for (;; rest()) {
		const pid_t child = fork();

		for (int i = 0; i < 100; i++)
			memory[draw(&state) % (8 * MIB)] = (char)(child ? state : 3);
		if (child == 0)
			_exit(0);
		if (child > 0)
			waitpid(child, NULL, 0);
		usleep(20 * PAUSE_US);
	}
	return NULL;
}

static int deep(int depth, uint64_t *state)
{
	volatile char frame[6000];

	memset((char *)frame, (int)*state, sizeof frame);
	return (depth ? deep(depth - 1, state) : 0) + frame[draw(state) % sizeof frame];
}

static void *stacks(void *seed)
{
	uint64_t state = (uintptr_t)seed;

	for (;; rest())
		deep((int)(draw(&state) % 1000), &state);
	return NULL;
}

static void *protects(void *seed)
{
	uint64_t state = (uintptr_t)seed;
	char *memory = map(4 * MIB);

	for (;; rest()) {
		char *at = memory + page_in(&state, 3 * MIB);

		mprotect(at, MIB / 4, PROT_NONE);
		mprotect(at, MIB / 4, PROT_READ);
		mprotect(at, MIB / 4, PROT_READ | PROT_WRITE | (state & 32 ? PROT_EXEC : 0));
		at[5000] = (char)state;
	}
	return NULL;
}

static void *system_calls(void *seed)
{
	uint64_t state = (uintptr_t)seed, value;
	char *memory = map(4 * MIB);
	const int random = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	int ends[2];

	if (random < 0 || pipe2(ends, O_CLOEXEC) != 0)
		_exit(3);
	memset(memory, 1, 4 * MIB);
	for (;; rest()) {
		struct iovec from = { &value, sizeof value }, to = { memory + draw(&state) % (3 * MIB), sizeof value };

		value = state;
		if (read(random, memory + draw(&state) % (3 * MIB), 3000) < 0 || write(ends[1], memory, 5000) < 0 ||
		    read(ends[0], memory + draw(&state) % (3 * MIB), 5000) < 0)
			_exit(4);
		process_vm_writev(getpid(), &from, 1, &to, 1, 0);
	}
	return NULL;
}

static void *files(void *seed)
{
	uint64_t state = (uintptr_t)seed;
	const int file = open("/tmp/storm", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char *memory;

	if (file < 0 || ftruncate(file, (off_t)(4 * MIB)) != 0)
		_exit(5);
	pthread_mutex_lock(&addresses);
	memory = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	pthread_mutex_unlock(&addresses);
	if (memory == MAP_FAILED)
		_exit(6);
	for (;; rest()) {
		memory[draw(&state) % (4 * MIB)] = (char)state;
		if (!(state & 0x300))
			madvise(memory + page_in(&state, 3 * MIB), 16 * PAGE, MADV_DONTNEED);
	}
	return NULL;
}

static bool toggle(void)
{
	bool now;

	pthread_mutex_lock(&lock);
	now = paused = !paused;
	pthread_cond_broadcast(&changed);
	while (now && resting < started)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	return now;
}

int storm(int port)
{
	void *(*const threads[])(void *) = { stores,  stores, drops,  moves,    neighbours,   replaces,
					     forks,   stacks, protects, system_calls, files };
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	const int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
	pthread_attr_t attributes;

	setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (door < 0 || bind(door, (struct sockaddr *)&address, sizeof address) != 0 || listen(door, 64) != 0)
		return 1;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
		pthread_t thread;

		pthread_mutex_lock(&addresses);
		if (pthread_create(&thread, &attributes, threads[i], (void *)(uintptr_t)(i * 7919 + 12345)) != 0)
			return 1;
		pthread_mutex_unlock(&addresses);
		started++;
	}
	for (;;) {
		const int client = accept(door, NULL, NULL);
		char text[64];

		if (client < 0)
			continue;
		snprintf(text, sizeof text, "%s %lu\n", toggle() ? "paused" : "running", steps);
		if (send(client, text, strlen(text), MSG_NOSIGNAL) < 0)
			fprintf(stderr, "test-container: a client went away\n");
		close(client);
	}
}
