/* Preloaded into all programs of a machine: CLOCK_REALTIME is ahead of the machine's by what the file says, and drifts.
 * The file has a number of seconds, the rate, and when the drift began, in seconds since 1970. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>

static double offset, rate = 1, began;

__attribute__((constructor)) static void read_file(void)
{
    FILE *file = fopen("/etc/wall-clock", "re");
    if (file) {
        if (fscanf(file, "%lf %lf %lf", &offset, &rate, &began) != 3)
            offset = 0, rate = 1;
        fclose(file);
    }
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, time);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        double drift = (time->tv_sec - began + time->tv_nsec / 1e9) * (rate - 1);
        long long nanoseconds = time->tv_sec * 1000000000LL + time->tv_nsec + (long long)((offset + drift) * 1e9);
        time->tv_sec = nanoseconds / 1000000000;
        time->tv_nsec = nanoseconds % 1000000000;
    }
    return result;
}

int gettimeofday(struct timeval *restrict value, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    value->tv_sec = now.tv_sec;
    value->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *result)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result)
        *result = now.tv_sec;
    return now.tv_sec;
}
