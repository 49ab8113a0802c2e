/* Definitions that are newer than the kernel headers of the build. */
#pragma once

#include <stdint.h>
#include <sys/ioctl.h>
#include <linux/userfaultfd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

#define FEATURES                                                                                                            \
	(UFFD_FEATURE_PAGEFAULT_FLAG_WP | 1ULL << 12 /* WP_HUGETLBFS_SHMEM */ | 1ULL << 13 /* WP_UNPOPULATED */ |              \
	 1ULL << 15 /* WP_ASYNC */)

struct region {
	uint64_t start, end, categories;
};

struct scan {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};

#define SCAN _IOWR('f', 16, struct scan)

enum { SCAN_PROTECT = 1 };
enum { IS_REGISTERED = 1, IS_WRITTEN = 2, IS_PRESENT = 8, IS_SWAPPED = 16 };
