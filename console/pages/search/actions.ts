/** Actions of the palette, and which of them a text finds. */

export type PaletteAction = {
  readonly key: string;
  readonly group: 'create' | 'go' | 'environment' | 'settings';
  readonly label: string;
  /** Other words that find the action. */
  readonly words?: string;
  /** Why the action cannot be done, for example a role that may not do it. */
  readonly blocked?: string | null;
  readonly run: () => void;
};

/** Each word of the text must begin a word of the label. An empty text finds all actions. */
export function filterActions<Action extends Pick<PaletteAction, 'label' | 'words'>>(
  actions: readonly Action[],
  text: string,
): Action[] {
  const wanted = splitWords(text);
  return actions.filter(({ label, words = '' }) => {
    const own = splitWords(`${label} ${words}`);
    return wanted.every((word) => own.some((each) => each.startsWith(word)));
  });
}

/** Whether a text is the beginning of an action's label: the action then comes before the records. */
export function isNamed(action: Pick<PaletteAction, 'label'>, text: string): boolean {
  const [label, wanted] = [splitWords(action.label).join(' '), splitWords(text).join(' ')];
  return wanted.length > 2 && label.startsWith(wanted);
}

function splitWords(text: string): string[] {
  return text
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter(Boolean);
}
