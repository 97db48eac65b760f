import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { platform } from 'node:os';

/** Start time of a process as the system prints it; empty if there is no such process. Distinguishes a reused pid. */
export function processStart(pid: number): string {
  if (platform() === 'linux') {
    const stat = read(`/proc/${pid}/stat`) ?? '';
    const boot = read('/proc/sys/kernel/random/boot_id')?.trim() ?? '';
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // Field 3 is the state: a zombie holds no resources. Field 22 is the start time in ticks since boot.
    return stat === '' || fields[0] === 'Z' ? '' : `${boot}:${fields[19]}`;
  }
  try {
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim();
  } catch {
    return '';
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
