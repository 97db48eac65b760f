/** The events that an endpoint receives: a filter, and a checkbox for each name under the kind of its record. */
import { Checkbox, TextInput } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { useGet } from '../../client/queries.ts';
import { Loaded } from '../../components/states.tsx';
import { useTexts } from '../../texts/texts.ts';
import { WEBHOOK_TEXTS } from './texts.ts';
import { groupEventNames } from './webhook-records.ts';
import styles from './webhooks.module.css';

export function EventNamesInput({
  value,
  onValue,
}: {
  value: readonly string[];
  onValue: (names: string[]) => void;
}): ReactNode {
  const texts = useTexts(WEBHOOK_TEXTS);
  const types = useGet('/webhooks/event-types');
  const [filter, setFilter] = useState('');
  const change = (names: readonly string[], isOn: boolean) =>
    onValue([...value.filter((name) => !names.includes(name)), ...(isOn ? names : [])]);
  return (
    <Loaded query={types}>
      {({ items }) => {
        const hints = new Map<string, string>(items.map(({ event_name, description }) => [event_name, description]));
        const found = items.map(({ event_name }) => event_name).filter((name) => name.includes(filter.toLowerCase()));
        return (
          <div>
            <TextInput
              label={texts.filterEvents}
              placeholder="invoice"
              value={filter}
              onChange={({ currentTarget }) => setFilter(currentTarget.value)}
              description={texts.chosenCount(value.length, items.length)}
            />
            <div className={styles.names} role="group" aria-label={texts.events} tabIndex={0}>
              {found.length === 0 && <p className="muted">{texts.noneFound}</p>}
              {groupEventNames(found).map(({ group, event_names }) => {
                const chosen = event_names.filter((name) => value.includes(name)).length;
                return (
                  <fieldset key={group} className={styles.group}>
                    <legend>
                      <Checkbox
                        size="xs"
                        label={group.replaceAll('_', ' ')}
                        checked={chosen === event_names.length}
                        indeterminate={chosen > 0 && chosen < event_names.length}
                        onChange={({ currentTarget }) => change(event_names, currentTarget.checked)}
                      />
                    </legend>
                    {event_names.map((name) => (
                      <Checkbox
                        key={name}
                        size="xs"
                        label={<span className="mono">{name}</span>}
                        description={hints.get(name)}
                        checked={value.includes(name)}
                        onChange={({ currentTarget }) => change([name], currentTarget.checked)}
                      />
                    ))}
                  </fieldset>
                );
              })}
            </div>
          </div>
        );
      }}
    </Loaded>
  );
}
