// Prints the rules that standard input contains in the compact form.
import { encodeRules } from './lib/encoding';
import { readFileSync } from 'node:fs';

const { autoconsent } = JSON.parse(readFileSync(0, 'utf-8'));
process.stdout.write(JSON.stringify(encodeRules(autoconsent, null)));
