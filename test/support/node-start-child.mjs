// Says how node was started; with `stay` it then waits to be ended.
import { getHeapStatistics } from 'node:v8';

const { heap_size_limit } = getHeapStatistics();
process.send({ pid: process.pid, execArgv: process.execArgv, heap_size_limit });
if (!process.argv.includes('stay')) process.disconnect();
