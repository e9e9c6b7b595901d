/* TEST_SANITIZED: defined in builds under the address sanitizer, whose own memory is above every
 * limit of a process. */
#ifndef KILTER_TESTS_SUPPORT_SANITIZED_H
#define KILTER_TESTS_SUPPORT_SANITIZED_H

/* TEST_THREADS: in a build of gcc's under the thread sanitizer, where all takes some twenty times
 * as long. */
#ifdef __SANITIZE_THREAD__
#define TEST_THREADS
#endif

#if defined(__has_feature) /* clang */
#if __has_feature(address_sanitizer)
#define TEST_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) /* gcc */
#define TEST_SANITIZED
#endif

#endif
