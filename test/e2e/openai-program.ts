// A program that knows nothing of Leasehold: the SDK of OpenAI with its defaults. Prints the models, then a completion
// that streams.
import OpenAI from 'openai';

const client = new OpenAI();
for await (const { id } of client.models.list()) console.log(id);
const stream = await client.chat.completions.create({
  model: 'gpt-test',
  messages: [{ role: 'user', content: 'How is it held?' }],
  stream: true,
});
for await (const { choices } of stream) process.stdout.write(choices[0]?.delta.content ?? '');
