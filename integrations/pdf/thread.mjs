// The thread of render.ts. A thread of Node 20 begins in plain JavaScript, and takes the TypeScript loader from here.
import { register } from 'tsx/esm/api';

register();
await import('./render-thread.ts');
