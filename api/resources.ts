/** The table of contents of the interface: one line per resource. Order does not matter; mount.ts puts static paths first. */
import type { Route } from './route.ts';

export const routes: Route[] = [];
