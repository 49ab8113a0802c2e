#include "usage.h"

int usage(FILE *out, int code)
{
	fputs("usage: sentinel [--socket PATH] [--log PATH] [--nsrun PATH] [--cgroup NAME]\n"
	      "                [--memory-dir DIR --memory-bytes N] [--foreground]\n"
	      "       sentinel programs DIR\n"
	      "       sentinel remove --cgroup NAME DIR...\n"
	      "       sentinel version\n"
	      "\n"
	      "  --socket PATH       where requests come in (/run/understudy/sentinel.sock); PATH.lock tells a running one\n"
	      "  --log PATH          lines of JSON, at most 1 MiB with PATH.1; default: standard error\n"
	      "  --nsrun PATH        the program that runs others in a container's namespaces, for `spawn`\n"
	      "  --cgroup NAME       live in a cgroup of that name beside that of process 1, on every hierarchy\n"
	      "  --memory-dir DIR    mount a tmpfs there, or change the size of one that is there\n"
	      "  --memory-bytes N    its size\n"
	      "  --foreground        do not leave the caller; by default it returns when requests are taken\n"
	      "\n"
	      "`programs` mounts a tmpfs, from which programs can be run, unless there is one, and ends.\n"
	      "\n"
	      "`remove` unmounts what these have mounted below each DIR, removes the DIR with all that is in it and the\n"
	      "cgroups, and ends.\n"
	      "\n"
	      "It ends at SIGTERM or SIGINT, when what it runs has ended; at a second one it kills that. Stops that are\n"
	      "kept go on after SIGTERM below the next sentinel; SIGINT ends them, too.\n"
	      "Exit code 3: another one is running.\n",
	      out);
	return code;
}
