/**
 * A server that hangs answers nothing and breaks nothing off, and how long a statement may take says little about it. So after
 * some seconds, and again and again, it is asked whether it lives. If it does not say so twice in a row, what waits for it
 * is broken off.
 */
const LOOK_EVERY_MS = 5_000;
/** How long a look may take: whoever looks keeps to it. */
export const LOOK_WITHIN_MS = 3_000;
const LOOKS = 2;

/** What a hung server does not answer is broken off within this time. */
export const SILENT_WITHIN_MS = LOOKS * (LOOK_EVERY_MS + LOOK_WITHIN_MS);

/**
 * What was found of a server. Once it was silent, whoever asks next does not wait as long again: it is looked at once, and a request
 * that asks one question after the other, or tries again, is answered about when the first of them would have been.
 */
export type Found = { is_silent: boolean };

/** Answers how to end the watch, when the statement was answered. */
export function watchUntilAnswered(
  lives: () => Promise<boolean>,
  breakOff: () => void,
  found: Found = { is_silent: false },
): () => void {
  let is_over = false;
  let timer: NodeJS.Timeout | undefined;
  const lookLater = (failures: number) => {
    timer = setTimeout(() => void look(failures), LOOK_EVERY_MS);
  };
  const look = async (failures: number) => {
    const is_alive = await lives();
    if (is_alive) found.is_silent = false;
    if (is_over) return;
    if (is_alive) return lookLater(0);
    if (failures + 1 < LOOKS) return lookLater(failures + 1);
    found.is_silent = true;
    breakOff();
  };
  if (found.is_silent) void look(LOOKS - 1);
  else lookLater(0);
  return () => {
    is_over = true;
    clearTimeout(timer);
  };
}
