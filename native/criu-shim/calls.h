/* System calls without a C library: code that is loaded into CRIU must work with any of them. */
#pragma once

typedef unsigned long size_t;
typedef int pid_t;

enum { E_PERM = 1, E_NOENT = 2, E_SRCH = 3, E_INTR = 4, E_AGAIN = 11, E_ACCES = 13 };
enum { CWD = -100 };
enum { O_EMPTY = 01000, O_CLOSE_ON_EXEC = 02000000 };

#if defined(__x86_64__)
enum { NR_read = 0, NR_write = 1, NR_close = 3, NR_sched_yield = 24, NR_nanosleep = 35, NR_getpid = 39, NR_fstatfs = 138, NR_setpriority = 141,
       NR_getdents64 = 217, NR_exit_group = 231, NR_openat = 257, NR_unlinkat = 263, NR_faccessat = 269, NR_prlimit64 = 302,
       NR_renameat2 = 316, NR_setitimer = 38, NR_mmap = 9, NR_rt_sigprocmask = 14, NR_clone = 56, NR_kill = 62,
       NR_getppid = 110, NR_rt_sigtimedwait = 128, NR_prctl = 157, NR_ppoll = 271,
       NR_epoll_pwait = 281, NR_socket = 41, NR_sendto = 44, NR_sendmsg = 46, NR_getsockopt = 55, NR_futex = 202, NR_sched_setscheduler = 144,
       NR_clock_gettime = 228, NR_dup3 = 292, NR_fstat = 5, NR_fcntl = 72, NR_getpeername = 52, NR_listen = 50 };
enum { O_DIRECTORY_ONLY = 0200000 };

static inline long raw(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}
#elif defined(__aarch64__)
enum { NR_faccessat = 48, NR_openat = 56, NR_close = 57, NR_getdents64 = 61, NR_read = 63, NR_write = 64, NR_unlinkat = 35,
       NR_fstatfs = 44, NR_exit_group = 94, NR_nanosleep = 101, NR_setitimer = 103, NR_sched_yield = 124, NR_setpriority = 140, NR_prctl = 167, NR_getpid = 172,
       NR_prlimit64 = 261, NR_renameat2 = 276, NR_ppoll = 73, NR_kill = 129, NR_rt_sigprocmask = 135, NR_rt_sigtimedwait = 137,
       NR_getppid = 173, NR_clone = 220, NR_mmap = 222, NR_epoll_pwait = 22,
       NR_socket = 198, NR_sendto = 206, NR_sendmsg = 211, NR_getsockopt = 209, NR_futex = 98, NR_sched_setscheduler = 119, NR_clock_gettime = 113, NR_dup3 = 24, NR_fstat = 80, NR_fcntl = 25, NR_getpeername = 205, NR_listen = 201 };
enum { O_DIRECTORY_ONLY = 040000 };

static inline long raw(long number, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory", "cc");
	return x0;
}
#else
#error "system calls of this processor are not written yet"
#endif

static inline long monotonic_ns(void)
{
	long time[2] = { 0, 0 };

	raw(NR_clock_gettime, 1, (long)time, 0, 0, 0, 0);
	return time[0] * 1000000000 + time[1];
}

extern int *__errno_location(void);

/* Converts a raw result to that of a C library function. */
static inline long result(long value)
{
	if (value >= 0 || value < -4095)
		return value;
	*__errno_location() = (int)-value;
	return -1;
}

static inline char *append(char *to, const char *text)
{
	while (*text)
		*to++ = *text++;
	*to = 0;
	return to;
}

/* Returns the end of the text. */
static inline char *append_number(char *to, unsigned long value)
{
	char digits[24];
	int count = 0;

	do {
		digits[count++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	while (count)
		*to++ = digits[--count];
	*to = 0;
	return to;
}

/* Returns the number of bytes read, at most `room`, or a negative error. */
static inline long read_file(const char *path, char *buffer, long room)
{
	long fd = raw(NR_openat, CWD, (long)path, O_CLOSE_ON_EXEC, 0, 0, 0);
	long have = 0, count;

	if (fd < 0)
		return fd;
	while (have < room && (count = raw(NR_read, fd, (long)(buffer + have), room - have, 0, 0, 0)) > 0)
		have += count;
	raw(NR_close, fd, 0, 0, 0, 0, 0);
	return have;
}

/* Ends CRIU before it has changed anything, so there is nothing to undo. */
static inline void __attribute__((noreturn)) give_up(const char *who, const char *why)
{
	char line[96];
	long length = append(append(append(append(line, who), ": "), why), "\n") - line;

	raw(NR_write, 2, (long)line, length, 0, 0, 0);
	for (;;)
		raw(NR_exit_group, 125, 0, 0, 0, 0, 0);
}
