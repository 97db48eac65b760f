/** Statuses that say nothing to a reader: a record that is in use has them. */
const USUAL = new Set(['published', 'active', 'completed']);

/** The status of a hit in words; null for the usual one. */
export function toStatusWord(status: string | null | undefined): string | null {
  if (!status || USUAL.has(status.toLowerCase())) return null;
  const words = status.toLowerCase().replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}
