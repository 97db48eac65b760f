/** Finds the event name that a misspelled one probably means. */
import { distance } from 'fastest-levenshtein';

/** Share of its letters by which a name may differ from the one that is meant. */
const DIFFERENCE_MAX = 1 / 3;

/** Returns the name with the fewest different letters, if they are few; null for a name that is one of `names`. */
export function findNearestName(name: string, names: Iterable<string>): string | null {
  let nearest: string | null = null;
  let least = Math.max(1, Math.floor(name.length * DIFFERENCE_MAX)) + 1;
  for (const other of names) {
    const difference = distance(name.toLowerCase(), other.toLowerCase());
    if (other === name) return null;
    if (difference >= least) continue;
    nearest = other;
    least = difference;
  }
  return nearest;
}
