/** Shows a message for some seconds, as after a deed that leads to another page. */
import { notifications } from '@mantine/notifications';
import { defineTexts, useTexts } from '../texts/texts.ts';

export function useShowMessage(): (message: string) => void {
  const { close } = useTexts(TEXTS);
  return (message) => void notifications.show({ message, closeButtonProps: { 'aria-label': close } });
}

const TEXTS = defineTexts({ close: 'Close message' }, { de: { close: 'Meldung schließen' } });
