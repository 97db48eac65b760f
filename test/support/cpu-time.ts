/**
 * CPU time of this process during the work, in ms. Unlike elapsed time, it does not grow if other processes use the
 * machine.
 */
export function measureCpuMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
