/** CPU seconds of processes and everything below them, from /proc: user and system, the dead children included. */
import { readdirSync, readFileSync } from 'node:fs';

const TICKS_PER_SECOND = 100;

type Row = { pid: number; parent: number; seconds: number };

function rows(): Row[] {
  const found: Row[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const text = readFileSync(`/proc/${name}/stat`, 'utf8');
      const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
      const ticks = [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at]), 0);
      found.push({ pid: Number(name), parent: Number(fields[1]), seconds: ticks / TICKS_PER_SECOND });
    } catch {
      // The process ended while we looked.
    }
  }
  return found;
}

/** Seconds of CPU of these processes and all their descendants until now. */
export function cpuOfTree(pids: readonly number[]): number {
  const all = rows();
  const wanted = new Set(pids);
  for (let grew = true; grew; ) {
    grew = false;
    for (const row of all) {
      if (!wanted.has(row.pid) && wanted.has(row.parent)) {
        wanted.add(row.pid);
        grew = true;
      }
    }
  }
  return all.filter((row) => wanted.has(row.pid)).reduce((sum, row) => sum + row.seconds, 0);
}
