/** The list of all keys of the console, which `?` opens. */
import { Checkbox, Modal } from '@mantine/core';
import { Fragment, type ReactNode, useState } from 'react';
import { defineTexts, useTexts } from '../texts/texts.ts';
import { isListKeyOn, KEY_EFFECTS, KEY_NAMES, KEY_ROWS, saveListKey } from './keys.ts';
import styles from './keys-dialogue.module.css';

export function KeysDialogue({ onClose }: { onClose: () => void }): ReactNode {
  const texts = useTexts(TEXTS);
  const names = useTexts(KEY_NAMES);
  const effects = useTexts(KEY_EFFECTS);
  const [isOn, setOn] = useState(isListKeyOn);
  return (
    <Modal opened onClose={onClose} title={texts.title} closeButtonProps={{ 'aria-label': texts.close }}>
      <table className={styles.keys}>
        <thead className="visually-hidden">
          <tr>
            <th scope="col">{texts.key}</th>
            <th scope="col">{texts.effect}</th>
          </tr>
        </thead>
        <tbody>
          {KEY_ROWS.map(({ keys, effect }) => (
            <tr key={effect}>
              <td>
                {keys.map((key) => (
                  <Fragment key={key}>
                    <kbd>{names[key]}</kbd>{' '}
                  </Fragment>
                ))}
              </td>
              <td>{effects[effect].replaceAll('`', '')}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <Checkbox
        className={styles.setting}
        label={texts.isOn}
        description={texts.hint}
        checked={isOn}
        onChange={({ currentTarget: { checked } }) => {
          setOn(checked);
          saveListKey(checked);
        }}
      />
    </Modal>
  );
}

const TEXTS = defineTexts(
  {
    title: 'Keys',
    key: 'Key',
    effect: 'Effect',
    close: 'Close',
    isOn: '? opens this list',
    hint: 'The list also opens from the menu of zone, language and theme.',
  },
  {
    de: {
      title: 'Tasten',
      key: 'Taste',
      effect: 'Wirkung',
      close: 'Schließen',
      isOn: '? öffnet diese Liste',
      hint: 'Die Liste öffnet sich auch über das Menü für Zeitzone, Sprache und Farben.',
    },
  },
);
