/**
 * The search: records by id, number, e-mail, name or external id while one types, and actions. The input is a combobox, so that the focus
 * stays in it while the arrow keys move through the list.
 */
import { Modal } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { ApiError } from '../../client/client.ts';
import { getQuery } from '../../client/queries.ts';
import { useSession } from '../../client/session.ts';
import { showApiText } from '../../components/api-text.ts';
import { Chip } from '../../components/chip.tsx';
import { useTexts } from '../../texts/texts.ts';
import { filterActions, isNamed, type PaletteAction } from './actions.ts';
import { type FoundItem, groupHits, HIT_KINDS, type RecordRef, type ShownKind } from './hits.ts';
import { useOpenPath, usePaletteActions } from './palette-actions.ts';
import { loadRecent, saveRecent } from './recent.ts';
import { findRecordPath } from './record-path.ts';
import styles from './search-palette.module.css';
import { STATUS_TEXTS, toStatusWord } from './status-word.ts';
import { TEXTS } from './texts.ts';

const DEBOUNCE_MS = 120;
const RESULTS_MAX = 20;

type Option = {
  readonly key: string;
  readonly title: string;
  readonly subtitle?: string | null;
  readonly matched?: string | null;
  readonly status?: string | null;
  readonly isId?: boolean;
  readonly blocked?: string | null;
  readonly run: () => void;
};
type OptionGroup = { readonly key: string; readonly label: string; readonly options: readonly Option[] };

export function SearchPalette({ onClose }: { onClose: () => void }): ReactNode {
  const texts = useTexts(TEXTS);
  const queries = useQueryClient();
  const [text, setText] = useState('');
  const search = useSearchResults(text.trim());
  const toGroups = useOptionGroups(onClose);
  const groups = toGroups(text.trim(), search.hits);
  const options = groups.flatMap((group) => group.options);
  const [chosen, setChosen] = useState<string | null>(null);
  const list = useId();
  const active = options.find(({ key }) => key === chosen) ?? options[0];
  const run = (option: Option | undefined) => {
    if (!option || option.blocked) return;
    onClose();
    option.run();
  };
  const latest = useRef(text);
  /** Enter before the answer opens the best result as soon as it is there, as after pasting an id. */
  const runBest = async () => {
    const { items } = await queries.fetchQuery(searchQuery(text.trim()));
    if (latest.current === text) run(toGroups(text.trim(), items)[0]?.options[0]);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const at = options.findIndex(({ key }) => key === active?.key);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + 6, PageUp: at - 6 }[event.key];
    if (event.key === 'Enter' && !event.nativeEvent.isComposing) {
      if (search.isPending && chosen === null) void runBest().catch(() => undefined);
      else run(active);
    } else if (next !== undefined && options.length > 0) {
      const isStep = Math.abs(next - at) === 1;
      const place = isStep ? (next + options.length) % options.length : Math.min(Math.max(next, 0), options.length - 1);
      setChosen(options[place]!.key);
    } else return;
    event.preventDefault();
  };
  return (
    <Modal.Root
      opened
      onClose={onClose}
      size={620}
      padding={0}
      centered={false}
      yOffset="10vh"
      classNames={{ content: styles.content ?? '', inner: styles.inner ?? '' }}
    >
      <Modal.Overlay />
      <Modal.Content aria-label={texts.title}>
        <Modal.Body className={styles.body}>
          <div className={styles.head}>
            <input
              className={styles.input}
              role="combobox"
              aria-expanded="true"
              aria-controls={list}
              aria-autocomplete="list"
              aria-activedescendant={active ? `${list}-${active.key}` : undefined}
              aria-label={texts.label}
              placeholder={texts.placeholder}
              value={text}
              maxLength={200}
              autoComplete="off"
              autoCorrect="off"
              spellCheck={false}
              enterKeyHint="go"
              data-autofocus
              onChange={({ currentTarget }) => {
                setText(currentTarget.value);
                setChosen(null);
                latest.current = currentTarget.value;
              }}
              onKeyDown={onKeyDown}
            />
            <button type="button" className={styles.close} onClick={onClose} aria-label={texts.close}>
              esc
            </button>
          </div>
          <div id={list} role="listbox" aria-label={texts.results} className={styles.list} aria-busy={search.isPending}>
            {groups.map(({ key, label, options: members }) => (
              <div key={key} role="group" aria-label={label}>
                <div className={styles.group} aria-hidden="true">
                  {label}
                </div>
                {members.map((option) => (
                  <OptionRow
                    key={option.key}
                    id={`${list}-${option.key}`}
                    option={option}
                    isActive={option === active}
                    onPoint={() => setChosen(option.key)}
                    onRun={() => run(option)}
                  />
                ))}
              </div>
            ))}
          </div>
          {options.length === 0 && !search.isPending && !search.error && (
            <div className={styles.note}>
              <p>{texts.nothing(text.trim())}</p>
              <p className="label">{texts.nothingHint}</p>
            </div>
          )}
          {search.error && (
            <p className={styles.note} role="alert">
              {search.error instanceof ApiError && search.error.status === 403 ? (
                texts.forbidden
              ) : (
                <>
                  {texts.failed}: {showApiText(search.error.message)}
                </>
              )}
            </p>
          )}
          <p className={styles.foot}>
            <span role="status">
              {search.isPending ? texts.searching : text === '' ? '' : texts.count(options.length)}
            </span>
            <span className={styles.keys} aria-hidden="true">
              <kbd>↑</kbd> <kbd>↓</kbd> {texts.move} · <kbd>↵</kbd> {texts.open}
            </span>
          </p>
        </Modal.Body>
      </Modal.Content>
    </Modal.Root>
  );
}

type OptionRowProps = { id: string; option: Option; isActive: boolean; onPoint: () => void; onRun: () => void };

function OptionRow({ id, option, isActive, onPoint, onRun }: OptionRowProps): ReactNode {
  const row = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (isActive) row.current?.scrollIntoView({ block: 'nearest' });
  }, [isActive]);
  const { title, subtitle, matched, status, isId, blocked } = option;
  return (
    <div
      ref={row}
      id={id}
      role="option"
      tabIndex={-1}
      aria-selected={isActive}
      aria-disabled={Boolean(blocked) || undefined}
      className={`${styles.option} ${isActive ? styles.active : ''} ${blocked ? styles.blocked : ''}`}
      onMouseMove={isActive ? undefined : onPoint}
      onMouseDown={(event) => event.preventDefault()}
      onClick={onRun}
    >
      <span className={styles.words}>
        <bdi className={isId ? 'mono' : undefined}>{title}</bdi>
        {subtitle && (
          <span className={styles.subtitle}>
            <bdi>{subtitle}</bdi>
          </span>
        )}
        {blocked && <span className={styles.subtitle}>{blocked}</span>}
      </span>
      {matched && <span className={styles.matched}>{matched}</span>}
      {status && <Chip>{status}</Chip>}
    </div>
  );
}

type SearchResults = { hits: readonly FoundItem[]; isPending: boolean; error: Error | null };

function searchQuery(q: string) {
  return getQuery('/search', { query: { q, kinds: [...HIT_KINDS], limit: RESULTS_MAX } });
}

/** Asks while one types. A request whose text is out of date is aborted. */
function useSearchResults(text: string): SearchResults {
  const [q] = useDebouncedValue(text, DEBOUNCE_MS);
  const answer = useQuery({
    ...searchQuery(q),
    enabled: q !== '',
    placeholderData: keepPreviousData,
    retry: false,
  });
  if (text === '') return { hits: [], isPending: false, error: null };
  return {
    hits: q === '' ? [] : (answer.data?.items ?? []),
    isPending: q !== text || answer.isFetching,
    error: answer.error,
  };
}

/** Options in the order of the list: an action that is named, records, other actions; without a text the recent ones. */
function useOptionGroups(onClose: () => void): (text: string, hits: readonly FoundItem[]) => OptionGroup[] {
  const texts = useTexts(TEXTS);
  const { environment_id } = useParams({ from: '/env/$environment_id' });
  const scope = `${useSession().session.id}.${environment_id}`;
  const statuses = useTexts(STATUS_TEXTS);
  const openPath = useOpenPath();
  const all = usePaletteActions();
  const open = (record: RecordRef) => {
    saveRecent(scope, record);
    onClose();
    void findRecordPath(record).then(openPath);
  };
  const toOption = (record: RecordRef & Partial<FoundItem>, isRecent = false): Option => ({
    key: `${record.kind}-${record.id}`,
    title: record.title,
    subtitle: isRecent
      ? [texts[record.kind as ShownKind], record.subtitle].filter(Boolean).join(', ')
      : record.subtitle,
    matched: toMatchedWord(record, texts),
    status: toStatusWord(record.status, statuses),
    isId: record.title === record.id || record.kind === 'invoice',
    run: () => open(record),
  });
  const toActionGroups = (actions: readonly PaletteAction[]): OptionGroup[] =>
    (['create', 'go', 'environment', 'settings'] as const)
      .map((group) => ({
        key: group,
        label: texts[group],
        options: actions
          .filter((action) => action.group === group)
          .map(({ key, label, blocked, run }) => ({ key, title: label, blocked: blocked ?? null, run })),
      }))
      .filter(({ options }) => options.length > 0);
  return (text, hits) => {
    const actions = filterActions(all, text);
    if (text === '') {
      const recent = loadRecent(scope).map((record) => toOption(record, true));
      return [
        ...(recent.length > 0 ? [{ key: 'recent', label: texts.recent, options: recent }] : []),
        ...toActionGroups(actions),
      ];
    }
    const named = actions.filter((action) => isNamed(action, text));
    const others = actions.filter((action) => !named.includes(action));
    const records = groupHits(hits).map(({ kind, hits: members }) => ({
      key: kind,
      label: texts[kind],
      options: members.map((hit) => toOption(hit)),
    }));
    return [
      ...toActionGroups(named).map((group) => ({ ...group, key: `named-${group.key}` })),
      ...records,
      ...toActionGroups(others),
    ];
  };
}

type SearchTexts = ReturnType<typeof useTexts<typeof TEXTS.en>>;

/** The field that was found, where the title does not show it. */
function toMatchedWord(
  { matched, title, id, subtitle }: RecordRef & Partial<FoundItem>,
  texts: SearchTexts,
): string | null {
  switch (matched) {
    case 'id':
      return title === id ? null : `${texts.byId} ${id}`;
    case 'external_id':
      return subtitle ? null : texts.byExternalId;
    case 'email':
      return texts.byEmail;
    case 'lookup_key':
      return texts.byKey;
    default:
      return null;
  }
}
