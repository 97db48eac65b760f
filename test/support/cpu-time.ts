/** CPU of this process while it works, in ms: unlike a clock it does not grow where others use the machine. */
export function measureCpuMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
