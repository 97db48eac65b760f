/**
 * Finds the route of a path segment by segment, instead of trying the pattern of each route. It reads paths as Express does: case-sensitive,
 * with an optional slash at the end. A static segment goes before a parameter.
 */
import type { Route } from './route.ts';

type TableRoute = Pick<Route, 'method' | 'path'>;
type TableEntry<Mounted> = {
  readonly route: Mounted;
  /** Names of the path parameters and the positions of their segments. */
  readonly parameters: readonly (readonly [name: string, at: number])[];
};
type TableNode<Mounted> = {
  readonly words: Map<string, TableNode<Mounted>>;
  parameter?: TableNode<Mounted>;
  readonly entries: TableEntry<Mounted>[];
};

type RouteMatch<Mounted> = { readonly route: Mounted; readonly params: Record<string, string> };

export class RouteTable<Mounted extends TableRoute> {
  readonly #root: TableNode<Mounted> = newNode();

  constructor(routes: readonly Mounted[]) {
    for (const route of routes) {
      const segments = listSegments(route.path);
      const node = segments.reduce(ensureNext, this.#root);
      const parameters = segments.flatMap((segment, at) =>
        segment.startsWith(':') ? [[segment.slice(1), at] as const] : [],
      );
      node.entries.push({ route, parameters });
    }
  }

  /** Finds the route of a request. Throws URIError for a parameter that cannot be decoded. */
  find(method: string, path: string): RouteMatch<Mounted> | undefined {
    const wanted = method === 'HEAD' ? 'get' : method.toLowerCase();
    const segments = listSegments(path);
    const entry = findEntry(this.#root, segments, ({ route }) => route.method === wanted);
    return entry && { route: entry.route, params: readParams(entry, segments) };
  }

  /** Lists the routes of any method that match the path. Throws URIError for a parameter that cannot be decoded. */
  list(path: string): Mounted[] {
    const segments = listSegments(path);
    const found: Mounted[] = [];
    findEntry(this.#root, segments, (entry) => {
      readParams(entry, segments);
      found.push(entry.route);
      return false;
    });
    return found;
  }
}

function newNode<Mounted>(): TableNode<Mounted> {
  return { words: new Map(), entries: [] };
}

function ensureNext<Mounted>(node: TableNode<Mounted>, segment: string): TableNode<Mounted> {
  if (segment.startsWith(':')) return (node.parameter ??= newNode());
  const next = node.words.get(segment) ?? newNode<Mounted>();
  node.words.set(segment, next);
  return next;
}

function findEntry<Mounted>(
  node: TableNode<Mounted>,
  segments: readonly string[],
  isWanted: (entry: TableEntry<Mounted>) => boolean,
  at = 0,
): TableEntry<Mounted> | undefined {
  const segment = segments[at];
  if (segment === undefined) return node.entries.find(isWanted);
  const word = node.words.get(segment);
  const found = word && findEntry(word, segments, isWanted, at + 1);
  if (found || !node.parameter || segment === '') return found;
  return findEntry(node.parameter, segments, isWanted, at + 1);
}

function listSegments(path: string): string[] {
  return (path.endsWith('/') ? path.slice(1, -1) : path.slice(1)).split('/');
}

function readParams<Mounted>({ parameters }: TableEntry<Mounted>, segments: readonly string[]): Record<string, string> {
  const params: Record<string, string> = Object.create(null);
  for (const [name, at] of parameters) params[name] = decodeURIComponent(segments[at]!);
  return params;
}
